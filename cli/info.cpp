// cli/info.cpp: `tilewright info`: this machine as the planner sees it, and the version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "command.h"
#include "machine_text.h"
#include "measure.h"
#include "tilewright/machine.h"
#include "tilewright/version.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

void print_json(const Measurement& m, bool measured) {
  json out = {{"version", version()},
              {"cpu_kernels", cpu::instruction_sets()},
              {"machine", machine_json(m.machine)}};
  if (measured) {
    out["copy_bytes_per_second"] = figure_json(m.copy_bytes_per_second);
    out["f32_peak_share"] = m.f32_peak_share;
    out["bf16_peak_share"] = m.bf16_peak_share;
    out["doubts"] = m.doubts;
  }
  fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
}

void print_text(const Measurement& m) {
  const auto line = [](std::string_view label, std::string_view value) {
    fmt::print("{:<24} {}\n", label, value);
  };
  line("tilewright", version());
  print_machine(m.machine);
  line("CPU kernels", fmt::format("{}", fmt::join(cpu::instruction_sets(), " ")));
  if (m.copy_bytes_per_second.known()) {
    line("copy bandwidth",
         fmt::format("{:<14} {}: {}", rate_text(m.copy_bytes_per_second.value, "B/s"),
                     name(m.copy_bytes_per_second.grade), m.copy_bytes_per_second.source));
  }
  for (const std::string& doubt : m.doubts) line("doubt", doubt);
}

}  // namespace

Command add_info(CLI::App& app) {
  CLI::App* info =
      app.add_subcommand("info", "Print this machine, its instruction sets, the version");
  info->footer(R"(Examples:
  tilewright info
  tilewright info --measure     clock, peaks, exponentials and bandwidth, in a few seconds
  tilewright info --json)");
  const auto measuring = std::make_shared<bool>(false);
  info->add_flag("--measure", *measuring, "Also measure what only running finds out");
  const auto json_flag = add_json_flag(*info);
  return {info,
          [=]() -> Status {
            Measurement m;
            m.machine = this_cpu();
            if (*measuring) m = measure(m.machine);
            if (*json_flag) {
              print_json(m, *measuring);
            } else {
              print_text(m);
            }
            return {};
          },
          json_flag};
}

}  // namespace tilewright::cli
