// src/machine/sysfs.cpp: reads the operating system's files about processors.
#include "machine/sysfs.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace tilewright::machine {
namespace {

namespace fs = std::filesystem;

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

fs::path cpu_folder(const fs::path& root, int cpu) {
  return root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu));
}

// Cores that one group's files allow: "cpu.max" is v2, the pair of cfs files v1.
std::optional<double> group_quota(const fs::path& group) {
  std::string quota;
  std::string period;
  if (const auto line = first_line(group / "cpu.max")) {
    std::istringstream(*line) >> quota >> period;
  } else {
    quota = first_line(group / "cpu.cfs_quota_us").value_or("");
    period = first_line(group / "cpu.cfs_period_us").value_or("");
  }
  const std::optional<double> share = number(quota);  // "max" and -1 are no limit
  const std::optional<double> whole = number(period);
  if (!share || !whole || *share <= 0 || *whole <= 0) return std::nullopt;
  return *share / *whole;
}

// The least quota from a group up to the mount. Inside a container the path may not exist; its
// nearest ancestor that does is then the container's own group.
std::optional<double> least_quota(const fs::path& mount, fs::path group) {
  std::optional<double> least;
  while (true) {
    const auto quota = group_quota(mount / group.relative_path());
    if (quota && (!least || *quota < *least)) least = quota;
    if (group.relative_path().empty()) return least;
    group = group.parent_path();
  }
}

}  // namespace

std::optional<std::string> first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!stream || !std::getline(stream, line)) return std::nullopt;
  return line;
}

std::vector<int> parse_cpu_list(const std::string& list) {
  std::vector<int> cpus;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0;
    int last = 0;
    const char* end = range.data() + range.size();
    const auto begin = std::from_chars(range.data(), end, first);
    if (begin.ec != std::errc()) continue;
    last = first;
    if (begin.ptr != end && *begin.ptr == '-') std::from_chars(begin.ptr + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::int64_t parse_size_bytes(const std::string& size) {
  std::int64_t value = 0;
  const char* end = size.data() + size.size();
  const auto parsed = std::from_chars(size.data(), end, value);
  if (parsed.ec != std::errc() || value < 0) return 0;
  if (parsed.ptr == end) return value;
  switch (*parsed.ptr) {
    case 'K':
      return value << 10;
    case 'M':
      return value << 20;
    case 'G':
      return value << 30;
    default:
      return value;
  }
}

std::optional<double> quota_cores(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  std::optional<double> least;
  // Lines are "id:controllers:path"; v2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string controllers;
    std::string path;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    std::vector<fs::path> mounts;
    if (controllers.empty()) {
      mounts = {root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"};
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      mounts = {root / "sys/fs/cgroup" / controllers, root / "sys/fs/cgroup/cpu"};
    }
    for (const fs::path& mount : mounts) {
      const auto quota = least_quota(mount, path);
      if (quota && (!least || *quota < *least)) least = quota;
    }
  }
  return least;
}

std::vector<Cache> caches(const fs::path& root, int cpu) {
  std::vector<Cache> found;
  for (int index = 0;; ++index) {
    const fs::path folder = cpu_folder(root, cpu) / "cache" / ("index" + std::to_string(index));
    const auto level = first_line(folder / "level");
    if (!level) break;
    if (first_line(folder / "type").value_or("") == "Instruction") continue;
    Cache cache;
    cache.level = static_cast<int>(number(*level).value_or(0));
    cache.bytes = parse_size_bytes(first_line(folder / "size").value_or(""));
    cache.shared_by = parse_cpu_list(first_line(folder / "shared_cpu_list").value_or(""));
    if (cache.bytes > 0) found.push_back(cache);
  }
  std::sort(found.begin(), found.end(),
            [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return found;
}

std::int64_t physical_cores(const fs::path& root, const std::vector<int>& cpus) {
  std::set<int> cores;
  for (const int cpu : cpus) {
    const auto threads =
        first_line(cpu_folder(root, cpu) / "topology/thread_siblings_list").value_or("");
    const std::vector<int> siblings = parse_cpu_list(threads);
    cores.insert(siblings.empty() ? cpu : siblings.front());
  }
  return static_cast<std::int64_t>(cores.size());
}

std::int64_t numa_nodes(const fs::path& root, const std::vector<int>& cpus) {
  std::int64_t nodes = 0;
  const fs::path folder = root / "sys/devices/system/node";
  for (const int node : parse_cpu_list(first_line(folder / "online").value_or(""))) {
    const auto list = first_line(folder / ("node" + std::to_string(node)) / "cpulist");
    const std::vector<int> here = parse_cpu_list(list.value_or(""));
    const bool ours = std::any_of(cpus.begin(), cpus.end(), [&](int cpu) {
      return std::find(here.begin(), here.end(), cpu) != here.end();
    });
    if (ours) ++nodes;
  }
  return std::max<std::int64_t>(1, nodes);
}

std::optional<double> clock_hz(const fs::path& root, int cpu) {
  if (const auto khz = first_line(cpu_folder(root, cpu) / "cpufreq/cpuinfo_max_freq")) {
    if (const auto value = number(*khz)) return *value * 1e3;
  }
  std::ifstream info(root / "proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("cpu MHz", 0) != 0) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    if (const auto value = number(line.substr(colon + 2))) return *value * 1e6;
  }
  return std::nullopt;
}

}  // namespace tilewright::machine
