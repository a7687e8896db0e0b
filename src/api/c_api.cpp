// src/api/c_api.cpp: the C interface over the C++ one; no exception crosses it.
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>

#include "tilewright/c/tilewright.h"
#include "tilewright/tilewright.h"

struct tilewright_plan {
  tilewright::Plan plan;
  std::string text;
  std::string json;
};

namespace {

using tilewright::Result;
using tilewright::Status;
using tilewright::StatusCode;

std::string& last_error() noexcept {
  thread_local std::string message;
  return message;
}

tilewright_status report(const Status& status) noexcept {
  if (!status.ok()) {
    try {
      last_error() = status.message();
    } catch (...) {
      last_error().clear();
    }
  }
  return static_cast<tilewright_status>(status.code());
}

Status null_argument(const char* name) {
  return {StatusCode::invalid_argument, std::string(name) + " is null; accepted: an address"};
}

// Runs a call that may throw and turns what it throws into a status.
template <typename Call>
tilewright_status guarded(Call&& call) noexcept {
  try {
    return report(call());
  } catch (const std::bad_alloc&) {
    return report(Status(StatusCode::out_of_memory, {}));
  } catch (const std::exception& error) {
    try {
      return report(Status(StatusCode::internal, error.what()));
    } catch (...) {
      return TILEWRIGHT_INTERNAL;
    }
  }
}

// Copies as much of a caller's struct as both sides know over defaults, so that older and newer
// callers work. A size that no version ever had is refused.
template <typename Struct>
Result<Struct> adopt(const char* name, const Struct* given, void (*init)(Struct*)) {
  Struct known;
  init(&known);
  if (given == nullptr) return known;
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > 16 * sizeof(Struct)) {
    return Status(StatusCode::invalid_argument, std::string(name) + ".struct_size is " +
                                                    std::to_string(given->struct_size) +
                                                    "; accepted: the size that its _init sets");
  }
  std::memcpy(&known, given,
              given->struct_size < sizeof(Struct) ? given->struct_size : sizeof(Struct));
  return known;
}

tilewright::Operand to_operand(const tilewright_operand& given) {
  tilewright::Operand operand;
  operand.alignment_bytes = given.alignment_bytes;
  if (given.given != 0) {
    operand.strides = tilewright::Strides{given.batch_stride, given.token_stride, given.head_stride,
                                          given.dim_stride};
  }
  return operand;
}

// Enumerators are narrowed to one byte only when they fit; others become one that no enum has,
// which AttentionProblem::create then refuses.
template <typename Enum>
Enum to_enum(std::int32_t value) {
  return static_cast<Enum>(value >= 0 && value < 255 ? value : 255);
}

tilewright::Lengths to_lengths(const tilewright_lengths& given) {
  return {to_enum<tilewright::LengthKind>(given.kind), given.max_tokens, given.total_tokens,
          to_enum<tilewright::MemorySpace>(given.on_device)};
}

tilewright::AttentionSpec to_spec(const tilewright_attention_spec& given) {
  tilewright::AttentionSpec spec;
  spec.batch = given.batch;
  spec.heads = given.heads;
  spec.kv_heads = given.kv_heads;
  spec.q_lengths = to_lengths(given.q_lengths);
  spec.kv_lengths = to_lengths(given.kv_lengths);
  spec.qk_dim = given.qk_dim;
  spec.v_dim = given.v_dim;
  spec.dtype = to_enum<tilewright::DType>(given.dtype);
  if (given.o_dtype != -1) spec.o_dtype = to_enum<tilewright::DType>(given.o_dtype);
  spec.q = to_operand(given.q);
  spec.k = to_operand(given.k);
  spec.v = to_operand(given.v);
  spec.o = to_operand(given.o);
  if (!std::isnan(given.scale)) spec.scale = given.scale;
  spec.softcap = given.softcap;
  spec.mask = {given.causal != 0, to_enum<tilewright::Diagonal>(given.diagonal), given.window_left,
               given.window_right};
  spec.alibi = to_enum<tilewright::PerHead>(given.alibi);
  spec.sinks = to_enum<tilewright::PerHead>(given.sinks);
  spec.bias = {to_enum<tilewright::BiasKind>(given.bias_kind),
               to_enum<tilewright::DType>(given.bias_dtype),
               given.bias_batch_stride,
               given.bias_head_stride,
               given.bias_q_stride,
               given.bias_kv_stride};
  return spec;
}

Result<tilewright::PlanOptions> to_options(const tilewright_plan_options& given) {
  tilewright::PlanOptions options;
  if (given.q_rows != 0 || given.kv_rows != 0) {
    options.tile = tilewright::Tile{given.q_rows, given.kv_rows};
  }
  if (given.schedule != TILEWRIGHT_SCHEDULE_AUTO) {
    if (given.schedule < 0 || given.schedule > TILEWRIGHT_SCHEDULE_STANDARD) {
      return Status(StatusCode::invalid_argument,
                    "schedule is " + std::to_string(given.schedule) +
                        "; accepted: -1 auto, 0 q_outer, 1 kv_outer, 2 standard");
    }
    options.schedule = static_cast<tilewright::Schedule>(given.schedule);
  }
  if (given.kv_splits != 0) options.kv_splits = given.kv_splits;
  options.workers = given.workers;
  if (given.isa != nullptr) options.isa = given.isa;
  options.deterministic = given.deterministic != 0;
  options.batch_invariant = given.batch_invariant != 0;
  return options;
}

Result<tilewright::Machine> to_machine(const char* device) {
  if (device == nullptr || std::strcmp(device, "cpu") == 0) return tilewright::this_cpu();
  if (std::strcmp(device, "cuda") == 0) return tilewright::this_gpu();
  return tilewright::machine_profile(device);
}

// An engine's C callback as an Executor.
class CallbackExecutor final : public tilewright::Executor {
 public:
  explicit CallbackExecutor(const tilewright_executor& callbacks) : callbacks_(callbacks) {}

  std::int64_t concurrency() const noexcept override { return callbacks_.concurrency; }

  void run_workers(std::int64_t workers,
                   const std::function<void(std::int64_t worker)>& work) override {
    const auto call = [](void* argument, std::int64_t worker) {
      (*static_cast<const std::function<void(std::int64_t)>*>(argument))(worker);
    };
    callbacks_.run_workers(callbacks_.context, workers, call,
                           const_cast<std::function<void(std::int64_t)>*>(&work));
  }

 private:
  tilewright_executor callbacks_;
};

Status create_plan(const tilewright_attention_spec* given_spec,
                   const tilewright_plan_options* given_options, tilewright_plan** plan) {
  if (plan == nullptr) return null_argument("plan");
  *plan = nullptr;
  if (given_spec == nullptr) return null_argument("spec");
  const auto spec = adopt("spec", given_spec, &tilewright_attention_spec_init);
  if (!spec.ok()) return spec.status();
  const auto c_options = adopt("options", given_options, &tilewright_plan_options_init);
  if (!c_options.ok()) return c_options.status();
  const auto options = to_options(*c_options);
  if (!options.ok()) return options.status();
  const auto problem = tilewright::AttentionProblem::create(to_spec(*spec));
  if (!problem.ok()) return problem.status();
  const auto machine = to_machine(c_options->device);
  if (!machine.ok()) return machine.status();
  const auto chosen = tilewright::plan(*problem, *machine, *options);
  if (!chosen.ok()) return chosen.status();
  *plan = new tilewright_plan{*chosen, to_text(*chosen), to_json(*chosen)};
  return {};
}

Status run_plan(const tilewright_plan* plan, const tilewright_tensors* given_tensors,
                const tilewright_run_options* given_options) {
  if (plan == nullptr) return null_argument("plan");
  if (given_tensors == nullptr) return null_argument("tensors");
  const auto adopted = adopt("tensors", given_tensors, &tilewright_tensors_init);
  if (!adopted.ok()) return adopted.status();
  const auto c_options = adopt("options", given_options, &tilewright_run_options_init);
  if (!c_options.ok()) return c_options.status();
  const tilewright_tensors& t = *adopted;
  const tilewright::AttentionTensors tensors{
      t.q, t.k, t.v, t.o, t.lse, t.q_lengths, t.kv_lengths, t.alibi_slopes, t.sinks, t.bias};
  tilewright::RunOptions options;
  options.workspace = {c_options->workspace, c_options->workspace_bytes};
  options.stream = c_options->stream;
  if (c_options->executor == nullptr) return tilewright::run(plan->plan, tensors, options);
  if (c_options->executor->run_workers == nullptr) return null_argument("executor.run_workers");
  CallbackExecutor executor(*c_options->executor);
  options.executor = &executor;
  return tilewright::run(plan->plan, tensors, options);
}

}  // namespace

extern "C" {

const char* tilewright_version_text(void) {
  return TILEWRIGHT_VERSION;
}

uint32_t tilewright_abi_version(void) {
  return TILEWRIGHT_ABI_VERSION;
}

void tilewright_attention_spec_init(tilewright_attention_spec* spec) {
  if (spec == nullptr) return;
  *spec = {};
  spec->struct_size = sizeof *spec;
  spec->batch = 1;
  spec->heads = 1;
  spec->kv_heads = 1;
  spec->o_dtype = -1;
  spec->scale = std::numeric_limits<double>::quiet_NaN();
  spec->window_left = -1;
  spec->window_right = -1;
  spec->bias_kv_stride = 1;
}

void tilewright_plan_options_init(tilewright_plan_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->schedule = TILEWRIGHT_SCHEDULE_AUTO;
  options->deterministic = 1;
}

void tilewright_tensors_init(tilewright_tensors* tensors) {
  if (tensors == nullptr) return;
  *tensors = {};
  tensors->struct_size = sizeof *tensors;
}

void tilewright_run_options_init(tilewright_run_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
}

tilewright_status tilewright_plan_create(const tilewright_attention_spec* spec,
                                         const tilewright_plan_options* options,
                                         tilewright_plan** plan) {
  return guarded([&] { return create_plan(spec, options, plan); });
}

void tilewright_plan_destroy(tilewright_plan* plan) {
  delete plan;
}

size_t tilewright_plan_workspace_bytes(const tilewright_plan* plan) {
  return plan == nullptr ? 0 : tilewright::workspace_bytes(plan->plan);
}

const char* tilewright_plan_text(const tilewright_plan* plan) {
  return plan == nullptr ? "" : plan->text.c_str();
}

const char* tilewright_plan_json(const tilewright_plan* plan) {
  return plan == nullptr ? "" : plan->json.c_str();
}

tilewright_status tilewright_prepare(const tilewright_plan* plan) {
  return guarded(
      [&] { return plan == nullptr ? null_argument("plan") : tilewright::prepare(plan->plan); });
}

tilewright_status tilewright_init_workspace(const tilewright_plan* plan, void* workspace,
                                            size_t workspace_bytes, void* stream) {
  return guarded([&] {
    if (plan == nullptr) return null_argument("plan");
    return tilewright::init_workspace(plan->plan, {workspace, workspace_bytes}, stream);
  });
}

tilewright_status tilewright_run(const tilewright_plan* plan, const tilewright_tensors* tensors,
                                 const tilewright_run_options* options) {
  return guarded([&] { return run_plan(plan, tensors, options); });
}

const char* tilewright_status_text(tilewright_status status) {
  return tilewright::name(static_cast<StatusCode>(status)).data();
}

const char* tilewright_error_text(void) {
  return last_error().c_str();
}

}  // extern "C"
