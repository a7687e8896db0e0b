// src/backend/cuda/device.cpp: what the driver tells of a GPU, and how it overrides a Machine's
// profile.
#include "backend/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "backend/cuda/driver.h"

namespace tilewright::cuda {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      found.back() += c;
    } else if (!found.back().empty()) {
      found.emplace_back();
    }
  }
  if (found.back().empty()) found.pop_back();
  return found;
}

// The first word with a digit: "H200" of "H200 SXM 141GB", "4090" of "GeForce RTX 4090".
std::string model(std::string_view profile_name) {
  for (const std::string& word : words(profile_name)) {
    if (word.find_first_of("0123456789") != std::string::npos) return word;
  }
  return {};
}

std::string architecture(const DeviceFacts& facts) {
  return fmt::format("sm_{}{}", facts.compute_capability_major, facts.compute_capability_minor);
}

}  // namespace

Result<DeviceFacts> query_device(const DriverApi& api, DeviceOrdinal device) {
  DeviceFacts facts;
  char device_name[256] = "";
  Status status =
      check(api, api.device_get_name(device_name, sizeof device_name, device), "naming the device");
  if (!status.ok()) return status;
  facts.name = device_name;
  const auto attribute = [&](DeviceAttribute which) {
    int value = 0;
    if (status.ok()) {
      status = check(api, api.device_get_attribute(&value, which, device),
                     fmt::format("reading attribute {} of device {} ({})", static_cast<int>(which),
                                 device, device_name));
    }
    return value;
  };
  facts.compute_capability_major = attribute(DeviceAttribute::compute_capability_major);
  facts.compute_capability_minor = attribute(DeviceAttribute::compute_capability_minor);
  facts.multiprocessors = attribute(DeviceAttribute::multiprocessor_count);
  facts.shared_bytes_per_block_optin =
      attribute(DeviceAttribute::shared_memory_per_block_optin_bytes);
  facts.registers_per_multiprocessor = attribute(DeviceAttribute::registers_per_multiprocessor);
  facts.l2_bytes = attribute(DeviceAttribute::l2_cache_size_bytes);
  facts.clock_hz = 1e3 * attribute(DeviceAttribute::clock_rate_khz);
  facts.memory_bytes_per_second = 2e3 * attribute(DeviceAttribute::memory_clock_rate_khz) *
                                  // NOLINTNEXTLINE(bugprone-integer-division): whole bytes
                                  (attribute(DeviceAttribute::memory_bus_width_bits) / 8);
  if (!status.ok()) return status;
  std::size_t bytes = 0;
  status = check(api, api.device_total_memory(&bytes, device), "reading the device's memory size");
  if (!status.ok()) return status;
  facts.memory_bytes = static_cast<double>(bytes);
  return facts;
}

Result<DeviceOrdinal> current_device(const DriverApi& api) {
  ContextHandle context = nullptr;
  Status status = check(api, api.context_get_current(&context), "reading the current context");
  if (!status.ok()) return status;
  DeviceOrdinal device = 0;
  status = context ? check(api, api.context_get_device(&device), "reading the context's device")
                   : check(api, api.device_get(&device, 0), "opening device 0");
  if (!status.ok()) return status;
  return device;
}

Machine overlay(Machine profile, const DeviceFacts& facts) {
  Machine machine = std::move(profile);
  machine.name = facts.name;
  machine.vendor = "NVIDIA";
  machine.kind = MachineKind::gpu;
  machine.unit_kind = "SM";
  const std::string arch = architecture(facts);
  if (!machine.arch.starts_with(arch)) machine.arch = arch;
  if (machine.id.empty()) machine.id = machine.arch;
  const auto set = [](Figure& figure, double value) {
    if (value > 0) figure = {value, Grade::queried, "CUDA driver"};
  };
  set(machine.unit_count, facts.multiprocessors);
  if (facts.multiprocessors > 0) machine.units = facts.multiprocessors;
  set(machine.clock_hz, facts.clock_hz);
  set(machine.cache_bytes, facts.l2_bytes);
  set(machine.memory_bytes, facts.memory_bytes);
  set(machine.memory_bytes_per_second, facts.memory_bytes_per_second);
  set(machine.registers_bytes_per_unit, 4.0 * facts.registers_per_multiprocessor);
  const auto shared = std::find_if(machine.stores.begin(), machine.stores.end(),
                                   [](const Store& s) { return s.name == "shared memory"; });
  Store& store = shared != machine.stores.end() ? *shared : machine.stores.emplace_back();
  if (store.name.empty()) {
    store.name = "shared memory";
    store.holds = "q k v";
    store.unit = "SM";
  }
  set(store.capacity_bytes, facts.shared_bytes_per_block_optin);
  return machine;
}

Machine matching_profile(std::span<const Machine> profiles, const DeviceFacts& facts) {
  const std::string arch = architecture(facts);
  const std::vector<std::string> device_words = words(facts.name);
  const Machine* best = nullptr;
  const auto distance = [&](const Machine& profile) {
    return std::abs(profile.units - facts.multiprocessors);
  };
  for (const Machine& profile : profiles) {
    const std::string wanted = model(profile.name);
    if (!profile.arch.starts_with(arch)) continue;
    if (std::find(device_words.begin(), device_words.end(), wanted) == device_words.end()) continue;
    if (best == nullptr || distance(profile) < distance(*best)) best = &profile;
  }
  return best != nullptr ? *best : Machine{};
}

}  // namespace tilewright::cuda
