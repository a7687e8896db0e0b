// src/plan/time_model.h: modelled time of a schedule from a machine's rates.
//
// A unit works through query tiles, each a walk over key tiles. On every pair of tiles it
// multiplies (matrix unit), exponentiates (vector unit) and loads (each link); these overlap in
// part. Units share off-chip memory, and idle while the last tiles finish.
#pragma once

#include "plan/placement.h"
#include "tilewright/plan.h"

namespace tilewright {

/// What a kind of kernel costs beyond the machine's peak rates. Where a number is no more than a
/// plausible one, its comment in time_model.cpp says so.
struct KernelCosts {
  double matmul_efficiency = 1;     ///< of the peak rate in the steady state
  double overlap = 0.5;             ///< share of the shorter resources' time that is hidden
  double vector_ops_per_score = 4;  ///< beside the exponential: scale, maximum, sum, conversion
  double pair_clocks = 0;           ///< loop and barriers of a pair of tiles
  double query_tile_clocks = 0;     ///< pipeline fill, epilogue
  double launch_seconds = 0;
  Index row_granule = 1;  ///< rows that the matrix unit takes at once
  Index key_granule = 1;
};

/// Costs for a profile that no kernel here runs on.
KernelCosts profile_costs(const Machine& machine);

/// Rates of one unit; 0: not known.
struct UnitRates {
  double matmul_flops_per_second = 0;
  double vector_ops_per_second = 0;
  double exp_per_second = 0;
  double clock_hz = 1e9;
};

/// Dense matrix rate for operands of this type; a CPU widens what it has no unit for to fp32.
const Figure& matmul_figure(const Machine& machine, DType dtype);

UnitRates unit_rates(const Machine& machine, DType dtype);

/// Bytes a second that one unit gets of a link; 0: not known.
double link_bytes_per_second(const Machine& machine, const Link& link);

/// What off-chip memory sees of a schedule's traffic once the last-level cache has served re-reads:
/// the walks of one head are assumed to go in step. Without a cache, all of it.
Traffic off_chip_traffic(const TrafficShape& shape, Schedule schedule, const Traffic& traffic,
                         const Tile& tile, const Machine& machine);

struct TimeInputs {
  const Machine* machine = nullptr;
  const Placement* placement = nullptr;
  TrafficShape shape;
  UnitRates rates;
  KernelCosts costs;
};

TimeModel q_outer_time(const TimeInputs& in, const TileShape& tile, Index kv_splits);
TimeModel kv_outer_time(const TimeInputs& in, const TileShape& tile);
TimeModel standard_time(const TimeInputs& in, const TileShape& tile);

}  // namespace tilewright
