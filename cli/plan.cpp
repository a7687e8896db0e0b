// cli/plan.cpp: `tilewright plan`: what would run here for a problem of given sizes, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "command.h"
#include "flags.h"

namespace tilewright::cli {

Command add_plan(CLI::App& app) {
  CLI::App* plan_app =
      app.add_subcommand("plan", "Print the plan for a problem: tile, footprint, traffic, reason");
  plan_app->footer(R"(Examples:
  tilewright plan --q-len 131072 --heads 1 --dim 64
  tilewright plan --heads 32 --kv-heads 8 --dtype bf16 --causal bottom-right --json
  tilewright plan --device h200 --dtype bf16 --heads 16
  tilewright plan --tile 4096x4096        what does not fit is refused, with what does)");
  const auto shape = add_shape_flags(*plan_app);
  const auto score = add_score_flags(*plan_app);
  const auto flags = add_plan_flags(*plan_app, Devices::profiles);
  const auto json = add_json_flag(*plan_app);
  return {plan_app,
          [=]() -> Status {
            AttentionSpec spec = shape->spec();
            score->apply(spec);
            const Result<Plan> plan = make_plan(spec, *flags);
            if (!plan.ok()) return plan.status();
            fmt::print("{}\n", *json ? to_json(*plan) : to_text(*plan));
            return {};
          },
          json};
}

}  // namespace tilewright::cli
