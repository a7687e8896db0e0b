// cli/simulate.cpp: `tilewright simulate`: a schedule run on memories that enforce and count.
#include "tilewright/simulate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "check.h"
#include "command.h"
#include "flags.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

/// Scores that the simulator, which favours plainness over speed, works through in a minute or so.
constexpr double kMostScores = 3e8;
/// Pairs of tiles, and rows of a softmax, that it counts in as long.
constexpr double kMostSteps = 1e7;

struct SimulateFlags {
  std::string sram;
  std::uint64_t seed = 1;
  bool bytes_only = false;
};

json simulation_json(const Plan& plan, const Simulation& run) {
  json tensors = json::object();
  for (const TensorTraffic& t : run.traffic.tensors) {
    tensors[t.tensor] = {{"bytes_read", t.bytes_read}, {"bytes_written", t.bytes_written}};
  }
  json stores = json::object();
  std::int64_t peak = 0;
  for (const StorePeak& store : run.stores) {
    json entry = {{"peak_bytes", store.peak_bytes}, {"capacity_bytes", nullptr}};
    if (store.capacity_bytes > 0) entry["capacity_bytes"] = store.capacity_bytes;
    stores[store.store] = entry;
    peak = std::max(peak, store.peak_bytes);
  }
  return {{"machine", plan.machine_id},
          {"schedule", name(plan.forward().schedule)},
          {"q_rows", plan.forward().tile.q_rows},
          {"kv_rows", plan.forward().tile.kv_rows},
          {"stages", plan.forward().stages},
          {"bytes_read", run.traffic.bytes_read()},
          {"bytes_written", run.traffic.bytes_written()},
          {"tensors", tensors},
          {"sram_peak_bytes", peak},
          {"stores", stores},
          {"planned_bytes_read", plan.traffic.bytes_read()},
          {"planned_bytes_written", plan.traffic.bytes_written()},
          {"equals_plan", run.traffic == plan.traffic}};
}

void print_simulation(const Plan& plan, const Simulation& run, double seconds) {
  const ForwardPlan& forward = plan.forward();
  fmt::print("{} on {}, tile {}x{}", name(forward.schedule), plan.machine_id, forward.tile.q_rows,
             forward.tile.kv_rows);
  if (forward.stages > 1) fmt::print(", {} stages", forward.stages);
  fmt::print("; simulated in {}\n\n", seconds_text(seconds));
  Table traffic({"tensor", "read", "written"});
  for (const TensorTraffic& t : run.traffic.tensors) {
    traffic.add({t.tensor, grouped(t.bytes_read), grouped(t.bytes_written)});
  }
  traffic.add(
      {"all, bytes", grouped(run.traffic.bytes_read()), grouped(run.traffic.bytes_written())});
  fmt::print("{}\n", traffic.text());
  Table stores({"store", "peak, bytes", "capacity"});
  for (const StorePeak& store : run.stores) {
    stores.add({store.store, grouped(store.peak_bytes),
                store.capacity_bytes > 0 ? grouped(store.capacity_bytes) : "not known"});
  }
  fmt::print("{}\n", stores.text());
  fmt::print("{}\n", run.traffic == plan.traffic ? "Every byte is as planned."
                                                 : "The plan foresaw other bytes: a defect.");
}

/// Refuses what would take much longer than a minute.
Status check_work(const Plan& plan, bool bytes_only) {
  const AttentionSpec& spec = plan.problem.spec();
  const auto q_len = static_cast<double>(plan.problem.q_len());
  const auto kv_len = static_cast<double>(plan.problem.kv_len());
  const double heads = static_cast<double>(spec.batch) * static_cast<double>(spec.heads);
  if (!bytes_only && heads * q_len * kv_len > kMostScores) {
    return {StatusCode::invalid_argument,
            fmt::format("the problem has {:.3g} scores; accepted: up to {:.3g}, since every one is "
                        "computed, or --bytes-only",
                        heads * q_len * kv_len, kMostScores)};
  }
  const Tile& tile = plan.forward().tile;
  const double pairs = heads * std::ceil(q_len / static_cast<double>(tile.q_rows)) *
                       std::ceil(kv_len / static_cast<double>(tile.kv_rows));
  const double steps =
      pairs + (plan.forward().schedule == Schedule::standard ? heads * q_len : 0.0);
  if (steps <= kMostSteps) return {};
  return {StatusCode::invalid_argument,
          fmt::format("the problem has {:.3g} pairs of tiles; accepted: up to {:.3g} (`tilewright "
                      "plan` foresees the same bytes for any length)",
                      steps, kMostSteps)};
}

Status run_simulation(const AttentionSpec& spec, const PlanFlags& flags,
                      const SimulateFlags& simulate_flags, bool as_json) {
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem.ok()) return problem.status();
  Result<Machine> machine =
      simulate_flags.sram.empty()
          ? flags.machine()
          : Result<Machine>(single_store_machine(parse_integer(simulate_flags.sram).value_or(0)));
  if (!machine.ok()) return machine.status();
  const Result<Plan> chosen = plan(*problem, *machine, flags.options());
  if (!chosen.ok()) return chosen.status();
  const Status status = check_work(*chosen, simulate_flags.bytes_only);
  if (!status.ok()) return status;
  SimulatorInputs inputs;
  inputs.seed = simulate_flags.seed;
  inputs.bytes_only = simulate_flags.bytes_only;
  const auto start = std::chrono::steady_clock::now();
  const Result<Simulation> run = simulate(*chosen, *machine, inputs);
  if (!run.ok()) return run.status();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (as_json) {
    fmt::print("{}\n",
               simulation_json(*chosen, *run).dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    print_simulation(*chosen, *run, took.count());
  }
  return {};
}

}  // namespace

Command add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "simulate", "Run a schedule on memories of given capacity, and count every byte");
  command->footer(R"(Examples:
  tilewright simulate --sram 65536 --dim 64 --tile 64x64
  tilewright simulate --sram 65536 --dim 64 --tile 64x64 --schedule standard
  tilewright simulate --sram 65536 --dim 64 --tile 64x64 --q-len 65536 --bytes-only
  tilewright simulate --device ascend_910b2 --dtype f16 --causal --json)");
  ShapeFlags defaults;
  defaults.heads = 1;
  defaults.q_len = 1024;
  const auto shape = add_shape_flags(*command, defaults);
  const auto score = add_score_flags(*command);
  const auto flags = add_plan_flags(*command, Devices::profiles);
  const auto simulate_flags = std::make_shared<SimulateFlags>();
  command
      ->add_option("--sram", simulate_flags->sram,
                   "Bytes of one on-chip memory, in place of --device")
      ->check(integer(1, std::int64_t{1} << 50))
      ->excludes("--device");
  command->add_option("--seed", simulate_flags->seed, "Of the random operands")
      ->capture_default_str();
  command->add_flag("--bytes-only", simulate_flags->bytes_only,
                    "Walk and count without numbers: for long sequences");
  const auto json_flag = add_json_flag(*command);
  return {command,
          [=]() -> Status {
            AttentionSpec spec = shape->spec();
            score->apply(spec);
            return run_simulation(spec, *flags, *simulate_flags, *json_flag);
          },
          json_flag};
}

}  // namespace tilewright::cli
