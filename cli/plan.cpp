// cli/plan.cpp: `tilewright plan`: what would run for a problem of given sizes, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>

#include "command.h"
#include "flags.h"
#include "report_page.h"
#include "text.h"
#include "timed_run.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

std::string tile_text(const Plan& plan) {
  return fmt::format("{}x{}", plan.forward().tile.q_rows, plan.forward().tile.kv_rows);
}

/// A row of the comparison: a plan, or why there is none.
struct Way {
  PlanOptions options;
  std::string note;
  Result<Plan> plan;
};

/// The best plan of each schedule, and behind the planner's own the tile asked for.
std::vector<Way> ways(const AttentionProblem& problem, const Machine& machine,
                      const PlanFlags& flags) {
  std::vector<Way> all;
  const auto add = [&](const PlanOptions& options, std::string note) {
    all.push_back({options, std::move(note), plan(problem, machine, options)});
  };
  PlanOptions options = flags.options();
  options.tile.reset();
  add(options, "the planner's choice");
  if (!flags.tile.empty()) add(flags.options(), "asked for");
  for (const Schedule schedule : {Schedule::q_outer, Schedule::kv_outer, Schedule::standard}) {
    options.schedule = schedule;
    const Result<Plan>& chosen = all.front().plan;
    if (chosen.ok() && chosen->forward().schedule == schedule) continue;
    add(options, schedule == Schedule::standard ? "unfused" : "");
  }
  return all;
}

std::vector<std::string> row(const Way& way, const Plan& chosen) {
  if (!way.plan.ok()) {
    const Tile& tile = *way.options.tile;
    return {std::string(name(way.options.schedule.value_or(chosen.forward().schedule))),
            fmt::format("{}x{}", tile.q_rows, tile.kv_rows),
            way.note + ": refused",
            "-",
            "-",
            "-",
            "-"};
  }
  const double seconds = way.plan->time.total_seconds;
  std::string note = way.note;
  if (way.options.tile && seconds > 0) {
    note += fmt::format(": {:.2f} times the time", seconds / chosen.time.total_seconds);
  }
  return {std::string(name(way.plan->forward().schedule)), tile_text(*way.plan), note,
          bytes_text(static_cast<double>(way.plan->traffic.bytes())),
          bytes_text(static_cast<double>(way.plan->off_chip.bytes())),
          bytes_text(static_cast<double>(way.plan->workspace_bytes)),
          // One unit for all, to be compared at a glance.
          seconds > 0 ? fmt::format("{:.3f} ms", 1e3 * seconds) : "not known"};
}

/// A refusal, each store that is over-filled and what it would hold on lines of their own.
std::string refusal_text(std::string_view message) {
  std::string text = "refused    ";
  for (const char c : message) {
    if (c == ' ' && text.ends_with(';')) {
      text += "\n           ";
    } else if (c == ' ' && text.ends_with(':') && !text.ends_with("fits:")) {
      text += "\n             ";
    } else {
      text += c;
    }
  }
  return text;
}

/// The ways beside each other, then in full: the planner's own, and the tile asked for.
Status compare(const AttentionSpec& spec, const PlanFlags& flags, bool as_json) {
  const Result<Machine> machine = flags.machine();
  if (!machine.ok()) return machine.status();
  const Result<AttentionProblem> problem = AttentionProblem::create(spec_for(*machine, spec));
  if (!problem.ok()) return problem.status();
  const std::vector<Way> all = ways(*problem, *machine, flags);
  const Result<Plan>& chosen = all.front().plan;
  json rows = json::array();
  Table table({"schedule", "tile", "", "on and off chip", "off-chip memory", "scratch", "time"}, 3);
  for (const Way& way : all) {
    // What does not fit is an answer here, other failures are not.
    const bool refused = way.options.tile && way.plan.status().code() == StatusCode::does_not_fit;
    if (!way.plan.ok() && !(refused && chosen.ok())) return way.plan.status();
    rows.push_back(way.plan.ok()
                       ? json::parse(to_json(*way.plan))
                       : json{{"tile", flags.tile}, {"refused", way.plan.status().message()}});
    table.add(row(way, *chosen));
  }
  if (as_json) {
    fmt::print("{}\n", rows.dump(2, ' ', false, json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}\n{}\n", table.text(), to_text(*chosen));
  if (flags.tile.empty()) return {};
  const Result<Plan>& asked = all[1].plan;
  if (!asked.ok()) {
    fmt::print("\n{}\n", refusal_text(asked.status().message()));
    return {};
  }
  // Its problem is the same, in the first line.
  const std::string text = to_text(*asked);
  fmt::print("\n{}\n", text.substr(text.find('\n') + 1));
  return {};
}

}  // namespace

Command add_plan(CLI::App& app) {
  CLI::App* plan_app =
      app.add_subcommand("plan", "Print the plan for a problem: tile, footprint, traffic, reason");
  plan_app->footer(R"(Examples:
  tilewright plan --q-len 131072 --heads 1 --dim 64
  tilewright plan --heads 32 --kv-heads 8 --dtype bf16 --causal bottom-right --json
  tilewright plan --device ascend_910b2 --dtype f16 --compare
  tilewright plan --device mi300x --dtype bf16 --tile 128x256 --compare
                                          which tile, why, what traffic, and what of mine
  tilewright plan --device h200 --dtype bf16 --report page.html
  tilewright plan --device rtx4090 --dtype bf16 --dim 256 --tile 128x64
                                          what does not fit is refused, with what does)");
  const auto shape = add_shape_flags(*plan_app);
  const auto score = add_score_flags(*plan_app);
  const auto flags = add_plan_flags(*plan_app, Devices::profiles);
  const auto comparing = std::make_shared<bool>(false);
  plan_app->add_flag(
      "--compare", *comparing,
      "Cost every schedule, unfused attention included, and the --tile asked for, beside "
      "each other");
  const auto report = add_report_flag(*plan_app);
  const auto json_flag = add_json_flag(*plan_app);
  return {plan_app,
          [=]() -> Status {
            AttentionSpec spec = shape->spec();
            score->apply(spec);
            if (*comparing) return compare(spec, *flags, *json_flag);
            Result<ReportPage> page = ReportPage::create(*report);
            if (!page.ok()) return page.status();
            const Result<Plan> plan = make_plan(spec, *flags);
            if (!plan.ok()) return plan.status();
            const Result<Machine> machine = flags->machine();
            if (!machine.ok()) return machine.status();
            Status status = page->write(*machine, {{*plan, std::nullopt, std::nullopt}});
            if (!status.ok()) return status;
            fmt::print("{}\n", *json_flag ? to_json(*plan) : to_text(*plan));
            return {};
          },
          json_flag};
}

}  // namespace tilewright::cli
