// src/schedule/hopper_forward.h: what one Hopper forward kernel is: its tile, shared memory and
// registers.
//
// Freestanding and constexpr; the one owner of these facts. The planner chooses and costs a
// Specialisation, the CUDA host code compiles and launches it, and the kernel is written against
// it. The kernel: one producer warpgroup copies Q, K and V to shared memory; each consumer
// warpgroup owns 64 query rows, computes S = Q K^T and O += P V with wgmma, and keeps P and O in
// registers. (P may also pass through shared memory: slower, and a check on the other.)
#pragma once

namespace tilewright::schedule {

enum class HopperElement : int { bf16 = 0, f16 = 1 };

/// Query rows and keys of a tile, and how many K and V tiles are in flight.
struct HopperForwardTile {
  int q_rows = 128;
  int kv_rows = 128;
  int stages = 2;

  friend constexpr bool operator==(const HopperForwardTile&, const HopperForwardTile&) = default;
};

/// Everything that is compiled into a kernel. Lengths, strides, scale, windows, sinks, splits and
/// grid are run-time arguments (kernels/attention/hopper_forward_params.h).
struct HopperForwardSpecialisation {
  HopperElement element = HopperElement::bf16;
  int qk_dim = 128;  ///< of the products: the problem's, rounded up to a multiple of 16
  int v_dim = 128;   ///< likewise
  HopperForwardTile tile = {};
  bool banded = false;  ///< causal or windowed: some keys inside the sequence are masked
  bool softcap = false;
  bool alibi = false;
  bool copy_producer = false;  ///< plain loads instead of TMA: any stride, any alignment
  bool f32_output = false;     ///< O is fp32 (also the partial results of a split), else `element`
  bool p_in_shared = false;    ///< P is an operand in shared memory instead of registers; for tests

  friend constexpr bool operator==(const HopperForwardSpecialisation&,
                                   const HopperForwardSpecialisation&) = default;
};

/// Calls visit(name, value) for every field, in declaration order, every value as int: for
/// printing, cache keys and the generated header that hands the Specialisation to the kernel.
template <typename Visit>
constexpr void for_each_field(const HopperForwardSpecialisation& s, Visit&& visit) {
  visit("element", static_cast<int>(s.element));
  visit("qk_dim", s.qk_dim);
  visit("v_dim", s.v_dim);
  visit("q_rows", s.tile.q_rows);
  visit("kv_rows", s.tile.kv_rows);
  visit("stages", s.tile.stages);
  visit("banded", static_cast<int>(s.banded));
  visit("softcap", static_cast<int>(s.softcap));
  visit("alibi", static_cast<int>(s.alibi));
  visit("copy_producer", static_cast<int>(s.copy_producer));
  visit("f32_output", static_cast<int>(s.f32_output));
  visit("p_in_shared", static_cast<int>(s.p_in_shared));
}

/// The inverse: the same values in the same order, as the generated header writes them.
constexpr HopperForwardSpecialisation hopper_forward_specialisation(
    int element, int qk_dim, int v_dim, int q_rows, int kv_rows, int stages, int banded,
    int softcap, int alibi, int copy_producer, int f32_output, int p_in_shared) {
  return {static_cast<HopperElement>(element),
          qk_dim,
          v_dim,
          {q_rows, kv_rows, stages},
          banded != 0,
          softcap != 0,
          alibi != 0,
          copy_producer != 0,
          f32_output != 0,
          p_in_shared != 0};
}

// --- Threads ---

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kRowsPerConsumer = 64;  ///< wgmma's M

/// Query heads of one KV head that share a consumer's rows, token by token: row r is token
/// r / heads of head r % heads. Rows left over stay idle. A run-time argument.
struct HeadPack {
  int heads = 1;
  int tokens = kRowsPerConsumer;  ///< of a consumer
  int reciprocal = 1 << 16;       ///< ceil(2^16 / heads)

  constexpr int token(int row) const { return row * reciprocal >> 16; }
  constexpr int head(int row) const { return row - token(row) * heads; }
};

constexpr HeadPack head_pack(int heads) {
  return {heads, kRowsPerConsumer / heads, ((1 << 16) + heads - 1) / heads};
}

/// Whether query heads of a KV head can share a tile: plain copies and ALiBi take its rows to be of
/// one head.
constexpr bool can_pack_heads(const HopperForwardSpecialisation& s) {
  return !s.copy_producer && !s.alibi;
}

/// Tiles of one consumer are for few queries, and packed.
constexpr bool packs_heads(const HopperForwardSpecialisation& s) {
  return s.tile.q_rows == kRowsPerConsumer && can_pack_heads(s);
}

constexpr int consumer_warpgroups(const HopperForwardSpecialisation& s) {
  return s.tile.q_rows / kRowsPerConsumer;
}

constexpr int threads(const HopperForwardSpecialisation& s) {
  return (consumer_warpgroups(s) + 1) * kWarpgroupThreads;
}

/// Whether consumers take turns at issuing products. Measured: +3% with three of them; two drift
/// into alternating by themselves, and lose 1% to 2% at the barrier.
constexpr bool ping_pong(const HopperForwardSpecialisation& s) {
  return consumer_warpgroups(s) == 3;
}

/// Whether a consumer takes the first row's maximum before it waits for P V. Measured: +4% to +8%
/// up to a head dim of 192; -7% at 256, whose score tiles are narrow.
constexpr bool early_maximum(const HopperForwardSpecialisation& s) {
  return s.v_dim <= 192;
}

/// Whether O is rescaled only once the tile's probabilities are there. Measured at 256, with and
/// without a band: 3% to 4% over rescaling between the exponentials, which is where the assembler
/// puts it or not as the wind blows; at 64 a loss of 1% to 2%. Beside softcap it would spill.
constexpr bool late_rescale(const HopperForwardSpecialisation& s) {
  return s.v_dim > 192 && !s.softcap && !s.alibi;
}

// --- Shared memory ---

/// Tiles lie in panels of 64 elements (128 bytes, the widest swizzle); a partial panel is
/// zero-filled.
inline constexpr int kPanelElements = 64;
inline constexpr int kPanelRowBytes = 128;

constexpr int panels(int dim) {
  return (dim + kPanelElements - 1) / kPanelElements;
}

/// Bytes of shared memory by what they hold. Every tile starts on a multiple of 1024 (the swizzle's
/// period).
struct HopperForwardFootprint {
  int q_bytes = 0;
  int k_bytes = 0;        ///< all stages
  int v_bytes = 0;        ///< all stages
  int p_bytes = 0;        ///< with p_in_shared only
  int control_bytes = 0;  ///< mbarriers and work items
  constexpr int total_bytes() const {
    return q_bytes + k_bytes + v_bytes + p_bytes + control_bytes;
  }
};

inline constexpr int kControlBytes = 1024;

constexpr HopperForwardFootprint footprint(const HopperForwardSpecialisation& s) {
  const int k_row_bytes = panels(s.qk_dim) * kPanelRowBytes;
  const int v_row_bytes = panels(s.v_dim) * kPanelRowBytes;
  const int p_row_bytes = s.p_in_shared ? panels(s.tile.kv_rows) * kPanelRowBytes : 0;
  return {s.tile.q_rows * k_row_bytes, s.tile.stages * s.tile.kv_rows * k_row_bytes,
          s.tile.stages * s.tile.kv_rows * v_row_bytes, s.tile.q_rows * p_row_bytes, kControlBytes};
}

// --- Registers ---

/// Of a consumer thread: S in fp32, P in 16 bits beside it (S of the next tile is computed while P
/// of this one is multiplied by V), and O in fp32.
constexpr int accumulator_registers(const HopperForwardSpecialisation& s) {
  return s.tile.kv_rows / 2 + s.tile.kv_rows / 4 + s.v_dim / 2;
}

/// What setmaxnreg gives each role. Together no more than the block starts with: 232, 168 or 128 a
/// thread, with one, two or three consumers.
constexpr int consumer_register_limit(const HopperForwardSpecialisation& s) {
  return consumer_warpgroups(s) == 3 ? 160 : 232;
}

constexpr int producer_register_limit(const HopperForwardSpecialisation& s) {
  return consumer_warpgroups(s) == 3 ? 32 : 40;
}

/// Largest accumulator_registers that compile without a spill: addresses, row maxima and sums, the
/// masks, softcap and ALiBi need the rest.
constexpr int accumulator_register_limit(const HopperForwardSpecialisation& s) {
  const bool modified = s.softcap || s.alibi;
  if (consumer_warpgroups(s) == 3) return modified ? 120 : 128;
  return modified ? 192 : 216;
}

// --- Legal and preferred tiles ---

inline constexpr int kMaxHeadDim = 256;

/// The shared memory and registers hold, and wgmma and TMA have the shapes.
constexpr bool legal(const HopperForwardSpecialisation& s, int shared_bytes_per_block) {
  const HopperForwardTile& t = s.tile;
  const bool dims = s.qk_dim >= 16 && s.qk_dim <= kMaxHeadDim && s.qk_dim % 16 == 0 &&
                    s.v_dim >= 16 && s.v_dim <= kMaxHeadDim && s.v_dim % 16 == 0;
  const bool shape = (packs_heads(s) || t.q_rows == 128 || t.q_rows == 192) && t.kv_rows >= 16 &&
                     t.kv_rows <= 256 && t.kv_rows % 16 == 0 && (t.stages == 2 || t.stages == 4);
  return dims && shape && footprint(s).total_bytes() <= shared_bytes_per_block &&
         accumulator_registers(s) <= accumulator_register_limit(s);
}

/// The dims that kernels are compiled for; a problem's dim uses the next one up, zero-filled.
inline constexpr int kNativeDims[] = {64, 96, 128, 192, 256};

constexpr int native_dim(int dim) {
  for (const int native : kNativeDims) {
    if (dim <= native) return native;
  }
  return 0;
}

/// The tile of few queries, for native dims: one consumer, bound by memory, which two stages keep
/// busy.
constexpr HopperForwardTile few_queries_tile(const HopperForwardSpecialisation& s) {
  const int dim = s.qk_dim > s.v_dim ? s.qk_dim : s.v_dim;
  return {kRowsPerConsumer, dim <= 128 ? 128 : dim <= 192 ? 112 : 80, 2};
}

/// The tile of others unless the planner or tuning knows better, for native dims and up to
/// kv_tokens keys; s.tile does not matter. Under a band, short sequences waste less of a
/// small tile (dim 64: +2% to +5% up to 1024 keys), long ones gain from a large one (dim 128: +1%
/// to +3% from 8192). Softcap and ALiBi need registers, so that their tiles are narrower; none of
/// these spills.
constexpr HopperForwardTile preferred_tile(const HopperForwardSpecialisation& s,
                                           long long kv_tokens) {
  const int dim = s.qk_dim > s.v_dim ? s.qk_dim : s.v_dim;
  const bool modified = s.softcap || s.alibi;
  if (dim <= 64) {
    if (s.banded && kv_tokens <= 1024) return {128, 128, 2};
    return {192, modified ? 112 : 128, 2};
  }
  if (dim <= 96) return {128, s.banded ? 128 : modified ? 160 : 192, 2};
  if (dim <= 128) {
    if (modified) return {128, s.banded ? 128 : 144, 2};
    return {128, s.banded && kv_tokens < 8192 ? 128 : 176, 2};
  }
  if (dim <= 192) {
    const bool narrow = s.softcap && s.copy_producer;
    if (s.v_dim <= 128) return {128, narrow ? 112 : 128, 2};
    return {128, narrow ? 64 : 112, 2};
  }
  return {128, 80, 2};
}

}  // namespace tilewright::schedule
