// cli/plan.cpp: `tilewright plan`: what would run for a problem of given sizes, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>

#include "command.h"
#include "flags.h"
#include "report_page.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

std::string tile_text(const Plan& plan) {
  return fmt::format("{}x{}", plan.forward().tile.q_rows, plan.forward().tile.kv_rows);
}

/// The best plan of each schedule, and the tile asked for beside the planner's own.
Status compare(const AttentionSpec& spec, const PlanFlags& flags, bool as_json) {
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  if (!problem.ok()) return problem.status();
  const Result<Machine> machine = flags.machine();
  if (!machine.ok()) return machine.status();
  std::vector<PlanOptions> ways;
  if (!flags.tile.empty()) ways.push_back(flags.options());
  for (const Schedule schedule : {Schedule::q_outer, Schedule::kv_outer, Schedule::standard}) {
    PlanOptions options = flags.options();
    options.tile.reset();
    options.schedule = schedule;
    ways.push_back(options);
  }
  json rows = json::array();
  Table table({"schedule", "tile", "on and off chip", "off-chip memory", "scratch", "time"}, 2);
  for (const PlanOptions& options : ways) {
    const Result<Plan> way = plan(*problem, *machine, options);
    if (!way.ok()) return way.status();
    if (as_json) {
      rows.push_back(json::parse(to_json(*way)));
      continue;
    }
    const double seconds = way->time.total_seconds;
    table.add({std::string(name(way->forward().schedule)), tile_text(*way),
               bytes_text(static_cast<double>(way->traffic.bytes())),
               bytes_text(static_cast<double>(way->off_chip.bytes())),
               bytes_text(static_cast<double>(way->workspace_bytes)),
               seconds > 0 ? seconds_text(seconds) : "not known"});
  }
  if (as_json) {
    fmt::print("{}\n", rows.dump(2, ' ', false, json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}", table.text());
  const Result<Plan> chosen = plan(*problem, *machine, flags.options());
  if (!chosen.ok()) return chosen.status();
  fmt::print("\n{}\n", to_text(*chosen));
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
  tilewright plan --device h200 --dtype bf16 --report page.html
  tilewright plan --device rtx4090 --dtype bf16 --dim 256 --tile 128x64
                                          what does not fit is refused, with what does)");
  const auto shape = add_shape_flags(*plan_app);
  const auto score = add_score_flags(*plan_app);
  const auto flags = add_plan_flags(*plan_app, Devices::profiles);
  const auto comparing = std::make_shared<bool>(false);
  plan_app->add_flag("--compare", *comparing,
                     "Cost every schedule, unfused attention included, beside each other");
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
