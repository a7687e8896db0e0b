// tilewright/machine.h: a device as data: its stores, the links between them, and its rates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/status.h"

namespace tilewright {

/// How a figure came to be known.
enum class Grade : std::uint8_t {
  absent = 0,    ///< not known; the value is 0 and must not be used
  recalled = 1,  ///< from memory of a document: confirm before relying on it
  derived = 2,   ///< computed from other figures
  read = 3,      ///< read in the document named
  measured = 4,  ///< measured on the machine named
  queried = 5,   ///< asked of the driver or the operating system
};

std::string_view name(Grade grade) noexcept;

/// A number, where it comes from, and how far to trust it.
struct Figure {
  double value = 0;
  Grade grade = Grade::absent;
  std::string source;

  bool known() const noexcept { return grade != Grade::absent; }
  bool operator==(const Figure&) const = default;
};

/// One on-chip memory. Names are the device's own: "shared memory", "L2", "UB", "L0C".
struct Store {
  std::string name;
  /// Which tiles a plan may place there: of "q k v s p o". "s[128x64]": at most that much of it at
  /// a time. Where s is held but p is not, p replaces s in place.
  std::string holds;
  std::string unit;  ///< what has one of these: "core", "SM", "vector core", "device"
  std::int64_t count_per_unit = 1;    ///< of these that serve one of the machine's units together
  Figure capacity_bytes;              ///< the hard cap for one tile set on one unit
  Figure bandwidth_bytes_per_second;  ///< of one of these stores

  bool operator==(const Store&) const = default;
};

/// A path along which data moves one way. Its ends are stores, "cache" (the last-level cache) or
/// "memory" (off chip).
struct Link {
  std::string from;
  std::string to;
  std::string unit;  ///< whose link this is; "device": shared by all
  Figure bytes_per_second;

  bool operator==(const Link&) const = default;
};

enum class MachineKind : std::uint8_t { cpu = 0, gpu = 1, npu = 2 };

std::string_view name(MachineKind kind) noexcept;

/// Everything the planner knows of a device. Rates are for the whole device unless the field says
/// per unit. Dense; one multiply-add is 2 FLOP.
struct Machine {
  std::string id;    ///< profile name, such as "h200", or "cpu" for the discovered one
  std::string name;  ///< "NVIDIA H200"
  std::string vendor;
  std::string arch;  ///< "sm_90a", "x86-64-v4", ...
  MachineKind kind = MachineKind::cpu;
  std::string unit_kind;  ///< "core", "SM", "CU", "cube core"
  std::int64_t units = 1;
  Figure unit_count;            ///< units, and where the number comes from
  std::int64_t numa_nodes = 1;  ///< CPU: memory domains that the usable cores lie on
  Figure clock_hz;

  std::vector<Store> stores;  ///< nearest to the arithmetic first
  std::vector<Link> links;
  Figure cache_bytes;       ///< last-level cache shared by all units
  Figure memory_bytes;      ///< off-chip memory
  std::string memory_kind;  ///< "HBM3e", ...
  Figure memory_bytes_per_second;

  Figure f32_flops_per_second;   ///< vector units
  Figure bf16_flops_per_second;  ///< fastest unit for bf16 products, fp32 accumulation
  Figure f16_flops_per_second;
  Figure fp8_flops_per_second;
  Figure exp_per_second;
  Figure registers_bytes_per_unit;
  Figure interconnect_bytes_per_second;  ///< to other devices, both directions together

  std::vector<std::string> features;  ///< CPU: "avx512f", "avx512_bf16", "amx_bf16", "neon", ...
  std::string note;

  bool operator==(const Machine&) const = default;

  const Store* store(std::string_view store_name) const noexcept {
    for (const Store& s : stores) {
      if (s.name == store_name) return &s;
    }
    return nullptr;
  }
};

/// The CPU this process runs on: cores it may use (affinity and container quota respected), caches,
/// instruction sets, asked once a process. The first call times the clock, for under a millisecond;
/// other figures that only a measurement gives stay absent. Peak rates are derived from clock and
/// SIMD width.
Machine this_cpu();

/// The NVIDIA GPU of the calling thread's current CUDA context, or the first one: its profile with
/// every figure that the driver gives. unavailable says what is missing.
Result<Machine> this_gpu();

/// A profile by id, such as "h200" or "ascend_910b2"; invalid_argument lists the nearest ids and
/// all that there are.
Result<Machine> machine_profile(std::string_view id);

/// A machine from a profile's text, as in machines/*.toml; messages name the line and the field.
Result<Machine> parse_machine(std::string_view toml, std::string_view id);

/// Ids of all profiles, in alphabetical order.
std::vector<std::string> machine_profile_ids();

}  // namespace tilewright
