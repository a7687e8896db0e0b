// report/hierarchy.cpp: finds each store's level from the links.
#include "report/hierarchy.h"

#include <algorithm>
#include <map>

namespace tilewright::report {
namespace {

constexpr const char* kMemory = "memory";
constexpr const char* kCache = "cache";

/// Distance from off-chip memory, in links.
std::map<std::string, int> levels_of(const Machine& machine) {
  std::map<std::string, int> level = {{kMemory, 0}};
  // A CPU's shared cache is one of its stores already.
  const bool cache = machine.kind != MachineKind::cpu && machine.cache_bytes.known();
  if (cache) level[kCache] = 1;
  const auto beside = [&](const std::string& store, int& found) {
    for (const Link& link : machine.links) {
      const std::string& other = link.from == store ? link.to : link.from;
      if ((link.from == store || link.to == store) && level.contains(other)) {
        found = std::min(found, level[other] + 1);
      }
    }
  };
  // Farthest stores first, again until nothing more is reached.
  constexpr int kFar = 1000;
  for (std::size_t round = 0; round < machine.stores.size(); ++round) {
    for (auto store = machine.stores.rbegin(); store != machine.stores.rend(); ++store) {
      int found = kFar;
      beside(store->name, found);
      if (found < kFar && !level.contains(store->name)) level[store->name] = found;
    }
  }
  int below = cache ? 1 : 0;
  for (auto store = machine.stores.rbegin(); store != machine.stores.rend(); ++store) {
    if (!level.contains(store->name)) level[store->name] = below + 1;
    below = std::max(below, level[store->name]);
  }
  return level;
}

}  // namespace

std::vector<std::vector<Box>> hierarchy(const Machine& machine, const Plan& plan) {
  const std::map<std::string, int> level = levels_of(machine);
  int top = 0;
  for (const auto& [name, value] : level) top = std::max(top, value);
  std::vector<std::vector<Box>> levels(static_cast<std::size_t>(top) + 1);
  const auto add = [&](Box box) {
    for (const FootprintItem& item : plan.footprint) {
      if (item.store == box.name) box.holds.push_back(item);
    }
    for (const Link& link : machine.links) {
      const auto other = level.find(link.to);
      const bool upwards = other != level.end() && other->second > level.at(box.name);
      if (link.from == box.name && upwards && !box.rate.known()) {
        box.rate = link.bytes_per_second;
        box.towards = link.to;
      }
    }
    levels[static_cast<std::size_t>(top - level.at(box.name))].push_back(std::move(box));
  };
  for (const Store& store : machine.stores) {
    add({store.name, store.unit, store.capacity_bytes, store.bandwidth_bytes_per_second, "", {}});
  }
  if (level.contains(kCache)) add({kCache, "", machine.cache_bytes, {}, "", {}});
  add({kMemory, "", machine.memory_bytes, machine.memory_bytes_per_second, "", {}});
  std::erase_if(levels, [](const std::vector<Box>& boxes) { return boxes.empty(); });
  return levels;
}

}  // namespace tilewright::report
