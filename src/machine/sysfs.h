// src/machine/sysfs.h: reads the operating system's files about processors, under any root.
//
// Every function takes the root of the file tree ("/" outside tests), so that tests can plant one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::machine {

/// The first line of a file, or nothing if there is none.
std::optional<std::string> first_line(const std::filesystem::path& file);

/// Processor numbers of a list such as "0-3,8,10-11"; what cannot be read is left out.
std::vector<int> parse_cpu_list(const std::string& list);

/// Bytes of a size such as "32K", "1M" or "512"; 0 if it is none.
std::int64_t parse_size_bytes(const std::string& size);

/// CPU time that control groups (v1 or v2) allow, in cores: the least of this process's group and
/// all above it. Nothing: no limit.
std::optional<double> quota_cores(const std::filesystem::path& root);

/// A data or unified cache.
struct Cache {
  int level = 0;
  std::int64_t bytes = 0;
  std::vector<int> shared_by;  ///< processors
};

/// The caches that a processor reaches, nearest first; empty where the system does not say.
std::vector<Cache> caches(const std::filesystem::path& root, int cpu);

/// How many cores the processors lie on: hardware threads of one core count once.
std::int64_t physical_cores(const std::filesystem::path& root, const std::vector<int>& cpus);

/// NUMA nodes that have one of the processors; at least 1.
std::int64_t numa_nodes(const std::filesystem::path& root, const std::vector<int>& cpus);

/// Highest clock, or that of now where the highest is not told; nothing if neither is.
std::optional<double> clock_hz(const std::filesystem::path& root, int cpu);

}  // namespace tilewright::machine
