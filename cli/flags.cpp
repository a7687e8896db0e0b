// cli/flags.cpp: flags that several subcommands share.
#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "check.h"
#include "text.h"
#include "timed_run.h"

namespace tilewright::cli {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;

}  // namespace

void ScoreFlags::apply(AttentionSpec& spec) const {
  if (!causal.empty()) parse_causal(causal, spec.mask);
  if (!window.empty()) parse_window(window, spec.mask);
  if (!scale.empty()) spec.scale = parse_number(scale);
  if (!softcap.empty()) spec.softcap = parse_number(softcap).value_or(0);
}

std::shared_ptr<ScoreFlags> add_score_flags(CLI::App& app) {
  auto flags = std::make_shared<ScoreFlags>();
  app.add_option("--causal", flags->causal,
                 "Causal mask; where its diagonal lies when q and kv lengths differ")
      ->expected(0, 1)
      ->default_str("bottom-right")
      ->check(one_of({"bottom-right", "top-left"}));
  app.add_option("--window", flags->window,
                 "Sliding window: keys to the left and right of the diagonal, inclusive; -1 "
                 "unbounded")
      ->check(window_text());
  app.add_option("--scale", flags->scale, "Factor of the scores (default: 1 / sqrt(q/k head dim))")
      ->check(finite_number());
  app.add_option("--softcap", flags->softcap, "Scores become c * tanh(score / c)")
      ->check(finite_number());
  return flags;
}

AttentionSpec ShapeFlags::spec() const {
  AttentionSpec spec;
  spec.batch = batch;
  spec.heads = heads;
  spec.kv_heads = kv_heads > 0 ? kv_heads : heads;
  spec.q_lengths.max_tokens = q_len;
  spec.kv_lengths.max_tokens = kv_len >= 0 ? kv_len : q_len;
  spec.qk_dim = dim;
  spec.v_dim = v_dim;
  spec.dtype = parse_dtype(dtype);
  if (!out_dtype.empty()) spec.o_dtype = parse_dtype(out_dtype);
  return spec;
}

std::shared_ptr<ShapeFlags> add_shape_flags(CLI::App& app, const ShapeFlags& defaults) {
  auto flags = std::make_shared<ShapeFlags>(defaults);
  flags->kv_len = -1;
  const auto add = [&](const char* flag, std::int64_t& value, const char* help, std::int64_t low,
                       std::int64_t high) {
    return app.add_option(flag, value, help)->check(integer(low, high));
  };
  add("--batch", flags->batch, "Sequences", 0, kMaxExtent)->capture_default_str();
  add("--q-len", flags->q_len, "Query tokens a sequence", 0, kMaxExtent)->capture_default_str();
  add("--kv-len", flags->kv_len, "Key tokens a sequence (default: --q-len)", 0, kMaxExtent);
  add("--heads", flags->heads, "Query heads", 1, kMaxExtent)->capture_default_str();
  add("--kv-heads", flags->kv_heads, "Key and value heads (default: --heads)", 1, kMaxExtent);
  add("--dim", flags->dim, "Head dim of q and k", 1, 256)->capture_default_str();
  add("--v-dim", flags->v_dim, "Head dim of v and o (default: --dim)", 1, 256);
  app.add_option("--dtype", flags->dtype, "Element type of q, k and v")
      ->check(one_of(dtype_words()))
      ->capture_default_str();
  app.add_option("--out-dtype", flags->out_dtype, "Element type of o (default: --dtype)")
      ->check(one_of(dtype_words()));
  return flags;
}

PlanOptions PlanFlags::options() const {
  PlanOptions options;
  if (!tile.empty()) options.tile = parse_tile(tile);
  if (!schedule.empty()) options.schedule = parse_schedule(schedule);
  options.workers = threads;
  options.isa = isa;
  return options;
}

Result<Machine> find_machine(const std::string& device) {
  if (device == "auto" || device == "cpu") return this_cpu();
  if (device == "cuda") return this_gpu();
  const std::filesystem::path path = device;
  if (path.extension() != ".toml") return machine_profile(device);
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  std::string why = error ? error.message() : std::string("not a file");
  std::string text;
  if (regular) {
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
    why = file.good() ? "empty" : "unreadable";
  }
  if (text.empty()) {
    return Status{StatusCode::invalid_argument,
                  fmt::format("{}: {}; accepted: a profile in TOML (docs/add-a-device.md)",
                              quote(device), why)};
  }
  return parse_machine(text, path.stem().string());
}

Result<Machine> PlanFlags::machine() const {
  Result<Machine> machine = find_machine(device);
  if (machine.ok()) return machine;
  return Status{machine.status().code(), "--device: " + machine.status().message()};
}

std::shared_ptr<PlanFlags> add_plan_flags(CLI::App& app, Devices devices) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::Option* device = app.add_option("--device", flags->device)->capture_default_str();
  if (devices == Devices::here) {
    device->description("Where to run")->check(one_of({"auto", "cpu", "cuda"}));
  } else {
    device
        ->description(
            "auto, cpu, cuda, or a device that need not be here: a profile that `tilewright "
            "machines` "
            "lists, or your own, a file that ends in .toml")
        ->type_name("ID");
  }
  app.add_option("--threads", flags->threads, "CPU threads (default: all this process may use)")
      ->check(integer(1, 4096));
  app.add_option("--tile", flags->tile,
                 "Query rows x key rows of a tile (default: the planner's choice)")
      ->check(tile_text());
  app.add_option("--schedule", flags->schedule,
                 "Order of the tiles (default: the planner's choice)")
      ->check(one_of(schedule_words()));
  app.add_option("--isa", flags->isa,
                 "CPU instruction set, as `tilewright info` lists them (default: the best)");
  return flags;
}

Result<Plan> make_plan(const AttentionSpec& spec, const PlanFlags& flags) {
  const Result<Machine> machine = flags.machine();
  if (!machine.ok()) return machine.status();
  const Result<AttentionProblem> problem = AttentionProblem::create(spec_for(*machine, spec));
  if (!problem.ok()) return problem.status();
  return plan(*problem, *machine, flags.options());
}

Status check_runnable(const Plan& plan) {
  if (plan.family != KernelFamily::modelled) return {};
  return {StatusCode::unsupported,
          fmt::format(
              "the schedule is {}, which no backend here runs; accepted: {}, {} (`tilewright "
              "plan` prints any)",
              name(plan.forward().schedule), name(Schedule::q_outer), name(Schedule::standard))};
}

}  // namespace tilewright::cli
