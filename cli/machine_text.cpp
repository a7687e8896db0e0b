// cli/machine_text.cpp: a machine's figures for people and as JSON.
#include "machine_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

std::string figure_text(const Figure& figure, const std::string& value) {
  if (!figure.known()) return "not known";
  return fmt::format("{:<14} {}: {}", value, name(figure.grade), figure.source);
}

json stores_json(const Machine& machine) {
  json stores = json::array();
  for (const Store& store : machine.stores) {
    stores.push_back(
        {{"name", store.name},
         {"unit", store.unit},
         {"count_per_unit", store.count_per_unit},
         {"holds", store.holds},
         {"capacity_bytes", figure_json(store.capacity_bytes)},
         {"bandwidth_bytes_per_second", figure_json(store.bandwidth_bytes_per_second)}});
  }
  return stores;
}

json links_json(const Machine& machine) {
  json links = json::array();
  for (const Link& link : machine.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"unit", link.unit},
                     {"bytes_per_second", figure_json(link.bytes_per_second)}});
  }
  return links;
}

}  // namespace

json figure_json(const Figure& figure) {
  if (!figure.known()) return nullptr;
  return {{"value", figure.value}, {"grade", name(figure.grade)}, {"source", figure.source}};
}

json machine_json(const Machine& machine) {
  return {{"id", machine.id},
          {"name", machine.name},
          {"vendor", machine.vendor},
          {"arch", machine.arch},
          {"kind", name(machine.kind)},
          {"unit_kind", machine.unit_kind},
          {"units", machine.units},
          {"unit_count", figure_json(machine.unit_count)},
          {"numa_nodes", machine.numa_nodes},
          {"clock_hz", figure_json(machine.clock_hz)},
          {"stores", stores_json(machine)},
          {"links", links_json(machine)},
          {"cache_bytes", figure_json(machine.cache_bytes)},
          {"memory_kind", machine.memory_kind},
          {"memory_bytes", figure_json(machine.memory_bytes)},
          {"memory_bytes_per_second", figure_json(machine.memory_bytes_per_second)},
          {"f32_flops_per_second", figure_json(machine.f32_flops_per_second)},
          {"bf16_flops_per_second", figure_json(machine.bf16_flops_per_second)},
          {"f16_flops_per_second", figure_json(machine.f16_flops_per_second)},
          {"fp8_flops_per_second", figure_json(machine.fp8_flops_per_second)},
          {"exp_per_second", figure_json(machine.exp_per_second)},
          {"registers_bytes_per_unit", figure_json(machine.registers_bytes_per_unit)},
          {"interconnect_bytes_per_second", figure_json(machine.interconnect_bytes_per_second)},
          {"features", machine.features},
          {"note", machine.note}};
}

std::string rate_text(double value, std::string_view unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", value, kPrefixes[prefix], unit);
}

std::string marked(const Figure& figure, const std::string& value) {
  if (!figure.known()) return "-";
  return figure.grade == Grade::recalled ? value + "*" : value;
}

void print_machine(const Machine& machine) {
  const auto line = [](std::string_view label, std::string_view value) {
    if (!value.empty()) fmt::print("{:<24} {}\n", label, value);
  };
  const auto figure = [&](std::string_view label, const Figure& f, const std::string& value) {
    if (f.known()) line(label, figure_text(f, value));
  };
  line("machine", machine.id + ": " + machine.name);
  line("vendor", machine.vendor);
  line("architecture", machine.arch);
  if (machine.unit_count.known()) {
    line(fmt::format("units ({})", machine.unit_kind),
         figure_text(machine.unit_count, fmt::format("{}", machine.units)));
  } else {
    line(fmt::format("units ({})", machine.unit_kind), "not known");
  }
  if (machine.numa_nodes > 1) line("memory domains", fmt::format("{}", machine.numa_nodes));
  figure("clock", machine.clock_hz, rate_text(machine.clock_hz.value, "Hz"));
  for (const Store& store : machine.stores) {
    std::string where = fmt::format("{}, a {}", store.name, store.unit);
    if (store.count_per_unit > 1) {
      where += fmt::format(" ({} a {})", store.count_per_unit, machine.unit_kind);
    }
    line(where, figure_text(store.capacity_bytes, bytes_text(store.capacity_bytes.value)));
    if (!store.holds.empty()) line("  holds", store.holds);
    figure("  bandwidth", store.bandwidth_bytes_per_second,
           rate_text(store.bandwidth_bytes_per_second.value, "B/s"));
  }
  for (const Link& link : machine.links) {
    line(fmt::format("{} to {}", link.from, link.to),
         figure_text(link.bytes_per_second, rate_text(link.bytes_per_second.value, "B/s")));
  }
  figure("last-level cache", machine.cache_bytes, bytes_text(machine.cache_bytes.value));
  line("memory kind", machine.memory_kind);
  figure("memory", machine.memory_bytes, bytes_text(machine.memory_bytes.value));
  figure("memory bandwidth", machine.memory_bytes_per_second,
         rate_text(machine.memory_bytes_per_second.value, "B/s"));
  const struct {
    const char* label;
    const Figure& rate;
  } rates[] = {{"f32 rate (vector)", machine.f32_flops_per_second},
               {"bf16 rate", machine.bf16_flops_per_second},
               {"f16 rate", machine.f16_flops_per_second},
               {"fp8 rate", machine.fp8_flops_per_second}};
  for (const auto& [label, rate] : rates) figure(label, rate, rate_text(rate.value, "FLOP/s"));
  figure("exponentials", machine.exp_per_second, rate_text(machine.exp_per_second.value, "/s"));
  figure("to other devices", machine.interconnect_bytes_per_second,
         rate_text(machine.interconnect_bytes_per_second.value, "B/s"));
  line("features", fmt::format("{}", fmt::join(machine.features, " ")));
  line("note", machine.note);
}

}  // namespace tilewright::cli
