// cli/info.cpp: `tilewright info`: this machine as the planner sees it, and the version.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "command.h"
#include "text.h"
#include "tilewright/machine.h"
#include "tilewright/version.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

json figure_json(const Figure& figure) {
  if (!figure.known()) return nullptr;
  return {{"value", figure.value}, {"grade", name(figure.grade)}, {"source", figure.source}};
}

json machine_json(const Machine& machine) {
  json stores = json::array();
  for (const Store& store : machine.stores) {
    stores.push_back(
        {{"name", store.name},
         {"unit", store.unit},
         {"holds", store.holds},
         {"capacity_bytes", figure_json(store.capacity_bytes)},
         {"bandwidth_bytes_per_second", figure_json(store.bandwidth_bytes_per_second)}});
  }
  return {{"id", machine.id},
          {"name", machine.name},
          {"vendor", machine.vendor},
          {"arch", machine.arch},
          {"kind", name(machine.kind)},
          {"unit_kind", machine.unit_kind},
          {"units", machine.units},
          {"clock_hz", figure_json(machine.clock_hz)},
          {"stores", stores},
          {"cache_bytes", figure_json(machine.cache_bytes)},
          {"memory_bytes", figure_json(machine.memory_bytes)},
          {"memory_bytes_per_second", figure_json(machine.memory_bytes_per_second)},
          {"f32_flops_per_second", figure_json(machine.f32_flops_per_second)},
          {"bf16_flops_per_second", figure_json(machine.bf16_flops_per_second)},
          {"f16_flops_per_second", figure_json(machine.f16_flops_per_second)},
          {"features", machine.features},
          {"note", machine.note}};
}

std::string figure_text(const Figure& figure, const std::string& value) {
  if (!figure.known()) return "not known";
  return fmt::format("{}  ({}: {})", value, name(figure.grade), figure.source);
}

std::string flops_text(const Figure& figure) {
  return figure_text(figure, fmt::format("{:.1f} GFLOP/s", figure.value / 1e9));
}

void print_machine(const Machine& machine) {
  const auto line = [](std::string_view label, std::string_view value) {
    if (!value.empty()) fmt::print("{:<32}{}\n", label, value);
  };
  line("machine", machine.name);
  line("architecture", machine.arch);
  line("units", fmt::format("{} ({})", machine.units, machine.unit_kind));
  line("clock",
       figure_text(machine.clock_hz, fmt::format("{:.2f} GHz", machine.clock_hz.value / 1e9)));
  for (const Store& store : machine.stores) {
    line(fmt::format("{} of each {}", store.name, store.unit),
         figure_text(store.capacity_bytes, bytes_text(store.capacity_bytes.value)));
  }
  line("shared cache", figure_text(machine.cache_bytes, bytes_text(machine.cache_bytes.value)));
  line("memory", figure_text(machine.memory_bytes, bytes_text(machine.memory_bytes.value)));
  line("f32 peak", flops_text(machine.f32_flops_per_second));
  line("features", fmt::format("{}", fmt::join(machine.features, " ")));
  line("note", machine.note);
}

}  // namespace

Command add_info(CLI::App& app) {
  CLI::App* info =
      app.add_subcommand("info", "Print this machine, its instruction sets, the version");
  info->footer(R"(Examples:
  tilewright info
  tilewright info --json)");
  const auto json_flag = add_json_flag(*info);
  return {info,
          [json_flag]() -> Status {
            const Machine machine = this_cpu();
            if (*json_flag) {
              const json out = {{"version", version()},
                                {"cpu_kernels", cpu::instruction_sets()},
                                {"machine", machine_json(machine)}};
              fmt::print("{}\n", out.dump(2, ' ', false, json::error_handler_t::replace));
            } else {
              fmt::print("{:<32}{}\n", "tilewright", version());
              print_machine(machine);
              fmt::print("{:<32}{}\n", "CPU kernels", fmt::join(cpu::instruction_sets(), " "));
            }
            return {};
          },
          json_flag};
}

}  // namespace tilewright::cli
