// tilewright/plan.h: how a problem will be computed on a machine, as a plain value, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/attention.h"
#include "tilewright/machine.h"
#include "tilewright/status.h"
#include "tilewright/traffic.h"

namespace tilewright {

/// The order in which tiles are visited.
enum class Schedule : std::uint8_t {
  q_outer = 0,  ///< each query tile walks its keys, online softmax (FlashAttention-2 order)
  kv_outer =
      1,  ///< each key tile walks the queries, O spilled and rescaled (FlashAttention-1 order)
  standard = 2,  ///< S = QK^T, P = softmax(S), O = PV, S and P in full: the unfused baseline
};

std::string_view name(Schedule schedule) noexcept;

/// A tile of the score matrix: q_rows queries by kv_rows keys.
struct Tile {
  std::int64_t q_rows = 0;
  std::int64_t kv_rows = 0;

  bool operator==(const Tile&) const = default;
};

/// Which kernels run a plan.
enum class KernelFamily : std::uint8_t {
  cpu_forward = 0,
  hopper_forward = 1,
  modelled = 2,  ///< for a profile that no backend here runs; the simulator can
};

std::string_view name(KernelFamily family) noexcept;

/// Forward attention: the schedule and its parameters.
struct ForwardPlan {
  Schedule schedule = Schedule::q_outer;
  Tile tile;
  std::int64_t stages = 1;     ///< kv tiles in flight
  std::int64_t kv_splits = 1;  ///< parts of the key range computed apart, merged in a fixed order
  /// Query heads of one kv head whose rows share a query tile, token by token.
  std::int64_t packed_heads = 1;
  std::int64_t workers = 1;  ///< threads, or thread blocks resident at once
  std::string isa;  ///< CPU: "portable", "avx2", "avx512", "avx512_bf16", "amx_bf16", "neon"
  /// Hopper: P passes through shared memory on its way to P V, where kernels keep it in registers.
  /// Same bits, slower: for tests of those kernels, never chosen.
  bool p_in_shared = false;

  bool operator==(const ForwardPlan&) const = default;
};

/// Bytes of one buffer in one on-chip store (or in "memory", for scratch off chip).
struct FootprintItem {
  std::string store;
  std::string what;  ///< "q tile", "k tile x 2 stages", ...
  std::int64_t bytes = 0;
  std::int64_t capacity_bytes = 0;  ///< of the store, for all that it holds; 0: not known

  bool operator==(const FootprintItem&) const = default;
};

/// Modelled time, by what it is spent on. Terms overlap: total is not their sum.
struct TimeModel {
  double matmul_seconds = 0;
  double exp_seconds = 0;            ///< exponentials and the vector work on each score
  double memory_seconds = 0;         ///< bytes over the slowest link on their way
  double tile_overhead_seconds = 0;  ///< loop, barrier and rescale cost of each tile
  double tail_seconds = 0;           ///< units idle in the last wave
  double total_seconds = 0;

  bool operator==(const TimeModel&) const = default;
};

/// A plan: printable, comparable, free of pointers. Make one with plan(); to_json prints it.
struct Plan {
  explicit Plan(AttentionProblem what) : problem(std::move(what)) {}

  AttentionProblem problem;
  KernelFamily family = KernelFamily::cpu_forward;
  std::string machine_id;
  std::variant<ForwardPlan> kernel;  ///< Backward, Decode and GroupedGemm join here
  std::vector<FootprintItem> footprint;
  Traffic traffic;   ///< between on-chip stores and what lies behind them
  Traffic off_chip;  ///< what is left for off-chip memory once the last-level cache has served
  TimeModel time;    ///< all zero: the machine's rates are not known
  std::int64_t workspace_bytes = 0;  ///< scratch that run() needs, off chip
  bool deterministic = true;         ///< same bits for any number of workers
  std::string reason;                ///< in words: why this schedule and tile

  const ForwardPlan& forward() const { return std::get<ForwardPlan>(kernel); }
  bool operator==(const Plan&) const = default;
};

/// What the caller insists on; everything unset is the planner's choice.
struct PlanOptions {
  std::optional<Tile> tile;
  std::optional<Schedule> schedule;
  std::optional<std::int64_t> kv_splits;
  std::int64_t workers = 0;      ///< CPU threads; 0: all that the machine gives
  std::string isa;               ///< CPU instruction set by name; empty: the best there is
  bool deterministic = true;     ///< same bits for any number of workers
  bool batch_invariant = false;  ///< same bits for a sequence whatever its neighbours
};

/// Chooses the plan of least modelled time whose tiles fit the machine's stores. does_not_fit
/// states need, have, the itemised footprint and the best tile that fits; unsupported names what is
/// refused.
Result<Plan> plan(const AttentionProblem& problem, const Machine& machine,
                  const PlanOptions& options = {});

/// The plan as JSON, every figure with its unit in the name.
std::string to_json(const Plan& plan);

/// The plan for people: a few lines with tile, footprint, traffic, time and reason.
std::string to_text(const Plan& plan);

}  // namespace tilewright
