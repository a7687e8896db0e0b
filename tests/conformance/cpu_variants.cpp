// tests/conformance/cpu_variants.cpp: the CPU backend, once for each instruction set and for
// tiles, schedules, splits and executors that force every path.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "conformance/variant.h"
#include "reference/problem_data.h"
#include "tilewright/machine.h"
#include "tilewright/plan.h"
#include "tilewright/run.h"

namespace tilewright::conformance {
namespace {

// Workers one after another, last first: no result may rest on their order or on threads.
class BackwardExecutor final : public Executor {
 public:
  std::int64_t concurrency() const noexcept override { return 3; }
  void run_workers(std::int64_t workers,
                   const std::function<void(std::int64_t worker)>& work) override {
    for (std::int64_t worker = workers - 1; worker >= 0; --worker) work(worker);
  }
};

// Scratch of just the size asked for, poisoned, between guards.
class GuardedWorkspace {
 public:
  explicit GuardedWorkspace(std::size_t bytes) : bytes_(bytes), storage_(bytes + 3 * kGuard) {
    reference::poison(storage_.data(), storage_.size());
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = storage_.data() + kGuard + (64 - address % 64) % 64;
    before_.assign(data_ - kGuard, data_);
    after_.assign(data_ + bytes, data_ + bytes + kGuard);
  }
  Workspace workspace() { return {data_, bytes_}; }
  bool intact() const {
    return std::memcmp(data_ - kGuard, before_.data(), kGuard) == 0 &&
           std::memcmp(data_ + bytes_, after_.data(), kGuard) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  std::size_t bytes_;
  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
  std::vector<std::byte> before_, after_;
};

// True when the plan does what is forced on it: a variant that ran something else would prove
// nothing. There may be less work than workers, and a batch-invariant plan does not split.
bool honours(const ForwardPlan& forward, const PlanOptions& options) {
  const bool splits_matter = options.kv_splits.has_value() && !options.batch_invariant;
  return (!options.tile || forward.tile == *options.tile) &&
         (!options.schedule || forward.schedule == *options.schedule) &&
         (!splits_matter || forward.kv_splits == *options.kv_splits) &&
         (options.workers == 0 || forward.workers <= options.workers) &&
         (options.isa.empty() || forward.isa == options.isa);
}

class CpuVariant final : public Variant {
 public:
  CpuVariant(std::string name, PlanOptions options, bool backward = false)
      : name_(std::move(name)), options_(std::move(options)), backward_(backward) {}

  std::string name() const override { return name_; }

  Result<std::string> run(const Call& call, const RunSettings& settings) const override {
    static const Machine machine = this_cpu();
    PlanOptions options = options_;
    if (settings.workers > 0) options.workers = settings.workers;
    options.batch_invariant = settings.batch_invariant;
    const Result<Plan> chosen = plan(*call.problem, machine, options);
    if (!chosen.ok()) return chosen.status();
    if (!honours(chosen->forward(), options)) {
      return Status{StatusCode::internal, "the plan is not as forced: " + to_text(*chosen)};
    }
    BackwardExecutor backward;
    GuardedWorkspace scratch(workspace_bytes(*chosen));
    RunOptions run_options;
    run_options.workspace = scratch.workspace();
    if (backward_) run_options.executor = &backward;
    const Status status = tilewright::run(*chosen, call.tensors, run_options);
    if (!status.ok()) return status;
    if (!scratch.intact()) return Status{StatusCode::internal, "wrote beyond its workspace"};
    return to_text(*chosen);
  }

 private:
  std::string name_;
  PlanOptions options_;
  bool backward_;
};

std::vector<std::unique_ptr<Variant>> cpu_variants() {
  std::vector<std::unique_ptr<Variant>> list;
  const auto add = [&](std::string name, const PlanOptions& options, bool backward = false) {
    list.push_back(std::make_unique<CpuVariant>(std::move(name), options, backward));
  };
  for (const std::string& isa : cpu::instruction_sets()) {
    PlanOptions options;
    options.isa = isa;
    add(isa, options);
    // Small and odd tiles put tile edges everywhere.
    for (const Tile& tile : {Tile{1, 16}, Tile{13, 32}, Tile{48, 64}}) {
      PlanOptions tiled = options;
      tiled.tile = tile;
      add(fmt::format("{} tile {}x{}", isa, tile.q_rows, tile.kv_rows), tiled);
    }
    PlanOptions split = options;
    split.tile = Tile{16, 16};
    split.kv_splits = 3;
    split.workers = 3;
    add(isa + " 3 splits backward", split, true);
    PlanOptions standard = options;
    standard.schedule = Schedule::standard;
    standard.workers = 2;
    add(isa + " standard", standard);
  }
  // TILEWRIGHT_TEST_VARIANT=neon: only variants whose names begin so.
  if (const char* wanted = std::getenv("TILEWRIGHT_TEST_VARIANT")) {
    std::erase_if(list, [&](const auto& variant) { return !variant->name().starts_with(wanted); });
    if (list.empty()) {
      std::fprintf(stderr, "no variant begins with TILEWRIGHT_TEST_VARIANT=%s on this CPU\n",
                   wanted);
      std::abort();
    }
  }
  return list;
}

}  // namespace

const std::vector<std::unique_ptr<Variant>>& variants() {
  static const auto list = cpu_variants();
  return list;
}

DType usual_dtype() {
  return DType::f32;
}

}  // namespace tilewright::conformance
