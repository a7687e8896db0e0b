// src/machine/this_cpu.cpp: discovers the CPU that this process runs on.
#include <sched.h>
#include <unistd.h>

#include "tilewright/machine.h"

namespace tilewright {
namespace {

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return sysconf(_SC_NPROCESSORS_ONLN);
}

Store cache_store(const char* name, int key, double fallback_bytes) {
  const long bytes = sysconf(key);
  Store store;
  store.name = name;
  store.unit = "core";
  store.holds = "q k v s p o";
  store.capacity_bytes = bytes > 0 ? Figure{static_cast<double>(bytes), Grade::queried, "sysconf"}
                                   : Figure{fallback_bytes, Grade::recalled, "a common size"};
  return store;
}

}  // namespace

Machine this_cpu() {
  Machine machine;
  machine.id = "cpu";
  machine.name = "this CPU";
  machine.kind = MachineKind::cpu;
  machine.unit_kind = "core";
  machine.units = usable_cores();
  machine.stores = {cache_store("L1", _SC_LEVEL1_DCACHE_SIZE, 32768),
                    cache_store("L2", _SC_LEVEL2_CACHE_SIZE, 524288)};
  return machine;
}

}  // namespace tilewright
