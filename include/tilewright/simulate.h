// tilewright/simulate.h: runs a plan's schedule on memories that enforce their capacity and count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/machine.h"
#include "tilewright/plan.h"
#include "tilewright/status.h"
#include "tilewright/traffic.h"

namespace tilewright {

/// Operands as numbers, contiguous [batch, tokens, heads, dim]. Sequences have the problem's length
/// bounds. Empty: drawn from a normal distribution by the seed.
struct SimulatorInputs {
  std::vector<double> q;
  std::vector<double> k;
  std::vector<double> v;
  std::uint64_t seed = 1;
  /// Walks and counts without numbers, so that long sequences take little time and no memory: o and
  /// lse stay empty, traffic and stores are the same.
  bool bytes_only = false;
};

/// How much of one store a unit used at most.
struct StorePeak {
  std::string store;
  std::int64_t peak_bytes = 0;
  std::int64_t capacity_bytes = 0;  ///< 0: not known, so not enforced

  bool operator==(const StorePeak&) const = default;
};

struct Simulation {
  std::vector<double> o;    ///< [batch, tokens, heads, v_dim]
  std::vector<double> lse;  ///< [batch, heads, tokens]
  Traffic traffic;          ///< counted, transfer by transfer
  std::vector<StorePeak> stores;
};

/// Runs the plan's schedule, tile by tile and in fp64, with one unit of the machine; element sizes
/// are those of the problem's types. does_not_fit if a tile over-fills a store; unsupported names
/// what the simulator does not model.
Result<Simulation> simulate(const Plan& plan, const Machine& machine,
                            const SimulatorInputs& inputs = {});

/// A machine with one on-chip memory of this size and nothing else known.
Machine single_store_machine(std::int64_t sram_bytes);

}  // namespace tilewright
