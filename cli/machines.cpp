// cli/machines.cpp: `tilewright machines [NAME]`: the devices that can be planned for.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"
#include "flags.h"
#include "machine_text.h"
#include "text.h"

namespace tilewright::cli {
namespace {

using json = nlohmann::ordered_json;

/// The store that holds keys: what limits a tile on most devices.
std::string key_store(const Machine& machine) {
  const Store* found = nullptr;
  for (const Store& store : machine.stores) {
    // Whole key tiles, not a block at a time.
    if ((" " + store.holds + " ").find(" k ") != std::string::npos) found = &store;
  }
  if (found == nullptr) return "-";
  return fmt::format("{} {}", found->name,
                     marked(found->capacity_bytes, bytes_text(found->capacity_bytes.value)));
}

Status list_machines(bool as_json) {
  json all = json::array();
  Table table({"id", "machine", "units", "key tiles in", "memory", "bf16"}, 2);
  for (const std::string& id : machine_profile_ids()) {
    const Result<Machine> machine = machine_profile(id);
    if (!machine.ok()) return machine.status();
    if (as_json) {
      all.push_back(machine_json(*machine));
      continue;
    }
    const Figure& rate = machine->bf16_flops_per_second.known() ? machine->bf16_flops_per_second
                                                                : machine->f16_flops_per_second;
    const bool f16_only = !machine->bf16_flops_per_second.known() && rate.known();
    table.add({id, machine->name, marked(machine->unit_count, fmt::format("{}", machine->units)),
               key_store(*machine),
               marked(machine->memory_bytes_per_second,
                      rate_text(machine->memory_bytes_per_second.value, "B/s")),
               marked(rate, rate_text(rate.value, "FLOP/s")) + (f16_only ? " (f16)" : "")});
  }
  if (as_json) {
    fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}", table.text());
  fmt::print(
      "* recalled from memory of a document, not read again: confirm before relying on it\n"
      "- not known. `tilewright machines ID` shows every figure and its source.\n");
  return {};
}

}  // namespace

Command add_machines(CLI::App& app) {
  CLI::App* machines = app.add_subcommand(
      "machines", "List the devices that can be planned for, or one with all its figures");
  machines->footer(R"(Examples:
  tilewright machines
  tilewright machines ascend_910b2
  tilewright machines my_npu.toml --json     a profile of your own)");
  const auto id = std::make_shared<std::string>();
  machines->add_option("name", *id, "A profile's id, or a file that ends in .toml");
  const auto json_flag = add_json_flag(*machines);
  return {machines,
          [=]() -> Status {
            if (id->empty()) return list_machines(*json_flag);
            const Result<Machine> machine = find_machine(*id);
            if (!machine.ok()) return machine.status();
            if (*json_flag) {
              fmt::print("{}\n", machine_json(*machine).dump(2, ' ', false,
                                                             json::error_handler_t::replace));
            } else {
              print_machine(*machine);
            }
            return {};
          },
          json_flag};
}

}  // namespace tilewright::cli
