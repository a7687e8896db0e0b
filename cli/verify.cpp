// cli/verify.cpp: `tilewright verify`: random problems on this machine against fp64.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "check.h"
#include "command.h"
#include "flags.h"
#include "progress.h"
#include "reference/random_problem.h"
#include "reference/tolerance.h"
#include "text.h"
#include "tilewright/run.h"
#include "timed_run.h"

namespace tilewright::cli {
namespace {

struct VerifyFlags {
  std::uint64_t seed = 0;
  std::int64_t count = 200;
  std::shared_ptr<PlanFlags> plan;
  std::shared_ptr<bool> json;
};

struct Failure {
  std::uint64_t seed = 0;
  std::string problem;
  std::string what;
};

struct Tally {
  std::int64_t passed = 0;
  std::int64_t refused = 0;
  std::string first_refusal;
  double worst_ratio = 0;  ///< largest error / allowed
  std::uint64_t worst_seed = 0;
  std::vector<Failure> failures;
};

// Adds the outcome of one problem; a Status says only that the test itself could not be made.
Status verify_one(std::uint64_t seed, const Machine& machine, const PlanOptions& options,
                  Tally& tally) {
  const reference::Case what = reference::random_case(seed);
  Result<reference::ProblemData> data = reference::ProblemData::create(what);
  if (!data.ok()) return data.status();
  const auto fail = [&](std::string why) {
    tally.failures.push_back({seed, reference::to_text(what), std::move(why)});
    return Status{};
  };
  const Result<AttentionProblem> problem =
      AttentionProblem::create(spec_for(machine, data->problem().spec()));
  if (!problem.ok()) return problem.status();
  const Result<Plan> chosen = plan(*problem, machine, options);
  const Status refusal = chosen.ok() ? check_runnable(*chosen) : chosen.status();
  if (!refusal.ok()) {
    if (refusal.code() != StatusCode::unsupported) return refusal;
    if (tally.refused++ == 0) tally.first_refusal = refusal.message();
    return {};
  }
  data->prepare_run();
  const AttentionTensors tensors = data->tensors();
  const Status status = timed_runs(*chosen, tensors, 1).status();
  if (!status.ok()) return fail(status.message());
  if (const auto touched = data->violation()) return fail(*touched);
  const reference::Comparison comparison =
      reference::compare(data->problem(), tensors, reference::all_rows(data->problem(), tensors));
  if (!comparison.ok()) return fail(reference::to_text(comparison, to_text(*chosen), seed));
  ++tally.passed;
  if (comparison.worst.ratio() > tally.worst_ratio) {
    tally.worst_ratio = comparison.worst.ratio();
    tally.worst_seed = seed;
  }
  return {};
}

void print_text(const VerifyFlags& flags, const Tally& tally) {
  for (const Failure& failure : tally.failures) {
    fmt::print("FAILED  tilewright verify --seed {} --count 1\n  {}\n  {}\n", failure.seed,
               failure.problem, failure.what);
  }
  fmt::print("seed {}, {} random problems: {} passed, {} failed, {} refused by name\n", flags.seed,
             flags.count, tally.passed, tally.failures.size(), tally.refused);
  if (tally.refused > 0) fmt::print("first refusal: {}\n", tally.first_refusal);
  if (tally.passed > 0) {
    fmt::print("largest error: {:.0f}% of what its row is allowed (seed {})\n",
               100 * tally.worst_ratio, tally.worst_seed);
  }
}

void print_json(const VerifyFlags& flags, const Tally& tally) {
  using json = nlohmann::ordered_json;
  json failures = json::array();
  for (const Failure& failure : tally.failures) {
    failures.push_back(
        {{"seed", failure.seed}, {"problem", failure.problem}, {"what", failure.what}});
  }
  const json out = {{"seed", flags.seed},
                    {"count", flags.count},
                    {"passed", tally.passed},
                    {"failed", tally.failures.size()},
                    {"refused", tally.refused},
                    {"worst_error_over_allowed", tally.worst_ratio},
                    {"worst_seed", tally.worst_seed},
                    {"failures", failures}};
  fmt::print("{}\n", out.dump(2));
}

Status verify(const VerifyFlags& flags) {
  const Result<Machine> machine = flags.plan->machine();
  if (!machine.ok()) return machine.status();
  Tally tally;
  {
    Progress progress(fmt::format("verify, seed {}", flags.seed));
    for (std::int64_t i = 0; i < flags.count; ++i) {
      Status status = verify_one(flags.seed + static_cast<std::uint64_t>(i), *machine,
                                 flags.plan->options(), tally);
      if (!status.ok()) return status;
      progress.update(static_cast<double>(i + 1) / static_cast<double>(flags.count),
                      fmt::format("{} failed", tally.failures.size()));
    }
  }
  if (*flags.json) {
    print_json(flags, tally);
  } else {
    print_text(flags, tally);
  }
  if (!tally.failures.empty()) {
    return {StatusCode::internal,
            fmt::format("{} of {} problems failed", tally.failures.size(), flags.count)};
  }
  if (tally.passed == 0) {
    return {StatusCode::unsupported, "every problem was refused: " + tally.first_refusal};
  }
  return {};
}

}  // namespace

Command add_verify(CLI::App& app) {
  CLI::App* verify_app =
      app.add_subcommand("verify", "Compare random problems with fp64 on this machine");
  verify_app->footer(
      R"(Problems mix every feature: lengths, masks, windows, biases, sinks, strides, types. The
tolerance of each row is computed from its own rounding, never guessed.

Examples:
  tilewright verify
  tilewright verify --count 2000 --isa portable
  tilewright verify --seed 7 --count 1      repeats one problem)");
  auto flags = std::make_shared<VerifyFlags>();
  flags->seed = std::random_device{}();
  verify_app->add_option("--seed", flags->seed, "Seed of the first problem (default: random)")
      ->check(integer(0, std::numeric_limits<std::int64_t>::max()));
  verify_app->add_option("--count", flags->count, "Problems")
      ->check(integer(1, 1'000'000'000))
      ->capture_default_str();
  flags->plan = add_plan_flags(*verify_app);
  flags->json = add_json_flag(*verify_app);
  return {verify_app, [flags] { return verify(*flags); }, flags->json};
}

}  // namespace tilewright::cli
