// src/machine/this_cpu.cpp: the machine that this process runs on, put together once.
#include <fmt/format.h>
#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>

#include "machine/clock.h"
#include "machine/instruction_set.h"
#include "machine/sysfs.h"
#include "tilewright/machine.h"

namespace tilewright {
namespace {

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
#if defined(__linux__)
  // Larger systems than one cpu_set_t holds need a larger set.
  for (int limit = CPU_SETSIZE; limit <= (1 << 16); limit *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(limit));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(limit));
    const bool answered = set != nullptr && sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; answered && cpu < limit; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (answered) return cpus;
  }
#endif
  const long online = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  for (int cpu = 0; cpu < online; ++cpu) cpus.push_back(cpu);
  return cpus;
}

Figure queried(double value, std::string source) {
  return {value, Grade::queried, std::move(source)};
}

Store cache_store(int level, Figure bytes, std::string unit) {
  Store store;
  store.name = fmt::format("L{}", level);
  store.unit = std::move(unit);
  store.capacity_bytes = std::move(bytes);
  return store;
}

// L1 and L2 of a core. Some virtual machines describe no caches in sysfs; the C library may know
// more, and a common size is better than none.
std::vector<Store> private_stores(const std::vector<machine::Cache>& caches) {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  const long asked[] = {sysconf(_SC_LEVEL1_DCACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE)};
#else
  const long asked[] = {0, 0};
#endif
  const double common[] = {32 << 10, 512 << 10};
  std::vector<Store> stores;
  for (int level = 1; level <= 2; ++level) {
    const auto cache = std::find_if(caches.begin(), caches.end(),
                                    [&](const machine::Cache& c) { return c.level == level; });
    Figure bytes{common[level - 1], Grade::recalled, "a common size; the system does not say"};
    if (cache != caches.end()) {
      bytes = queried(static_cast<double>(cache->bytes), "sysfs");
    } else if (asked[level - 1] > 0) {
      bytes = queried(static_cast<double>(asked[level - 1]), "sysconf");
    }
    stores.push_back(cache_store(level, bytes, "core"));
    // Scores are made and used a few rows at a time, near the arithmetic.
    stores.back().holds = level == 1 ? "s[12x512]" : "q k v o";
  }
  return stores;
}

/// What a core does, where that can be timed: the system often says a nominal clock, which cores
/// exceed. A try can only be too slow, so the larger of both counts.
Figure clock_of(const std::filesystem::path& root, int cpu) {
  Figure clock;
  if (const auto told = machine::clock_hz(root, cpu)) {
    clock = queried(*told, "operating system; cores may run faster or slower");
  }
  const auto timed = machine::measure_clock_hz();
  if (timed && *timed > clock.value) {
    clock = {*timed, Grade::measured, "one core, by a chain of additions of one clock each"};
  }
  return clock;
}

Machine discover() {
  const std::filesystem::path root = "/";
  const std::vector<int> cpus = allowed_cpus();
  const std::vector<machine::Cache> caches = machine::caches(root, cpus.front());
  const machine::Processor processor = machine::this_processor();

  Machine m;
  m.id = "cpu";
  m.name = processor.name;
  m.vendor = processor.vendor;
  m.arch = processor.arch;
  m.kind = MachineKind::cpu;
  m.unit_kind = "core";
  m.features = processor.features;
  m.units = machine::physical_cores(root, cpus);
  m.numa_nodes = machine::numa_nodes(root, cpus);
  m.note = fmt::format("{} hardware threads allowed", cpus.size());
  if (const auto quota = machine::quota_cores(root)) {
    // A part of a core is worth a thread: it finishes sooner than without.
    const auto cores = static_cast<std::int64_t>(std::ceil(*quota - 1e-9));
    m.units = std::clamp<std::int64_t>(cores, 1, m.units);
    m.note += fmt::format(", container quota {:.4g} cores", *quota);
  }
  m.unit_count = queried(static_cast<double>(m.units), "affinity, topology and container quota");
  m.stores = private_stores(caches);
  for (const machine::Cache& cache : caches) {
    if (cache.level != 3) continue;
    const auto domain = static_cast<std::int64_t>(std::max<std::size_t>(1, cache.shared_by.size()));
    const auto threads = static_cast<std::int64_t>(cpus.size());
    const auto domains = (threads + domain - 1) / domain;
    Store shared = cache_store(3, queried(static_cast<double>(cache.bytes), "sysfs"),
                               fmt::format("{} hardware threads", domain));
    // Shared: it holds nothing that a plan may count on having alone.
    m.stores.push_back(shared);
    m.cache_bytes = queried(static_cast<double>(cache.bytes * domains), "sysfs");
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (memory > 0) m.memory_bytes = queried(memory, "sysconf");
  m.clock_hz = clock_of(root, cpus.front());
  if (m.clock_hz.known()) {
    const double cores = static_cast<double>(m.units) * m.clock_hz.value;
    m.f32_flops_per_second = {cores * processor.f32_flops_per_clock, Grade::derived,
                              "clock x SIMD width x 2 pipes"};
    if (processor.bf16_flops_per_clock > 0) {
      m.bf16_flops_per_second = {cores * processor.bf16_flops_per_clock, Grade::derived,
                                 "clock x width of the bf16 unit"};
    }
  }
  return m;
}

}  // namespace

Machine this_cpu() {
  static const Machine machine = discover();
  return machine;
}

}  // namespace tilewright
