// src/plan/traffic.h: bytes that each schedule moves between on-chip stores and what lies behind.
//
// Closed forms of tile counts; the simulator counts the same bytes one by one and tests hold the
// two equal. References: Dao et al. 2022 (key tiles outside, O spilled), Dao 2023 (query tiles
// outside).
#pragma once

#include <cstdint>

#include "plan/walk_sums.h"
#include "tilewright/plan.h"
#include "tilewright/traffic.h"

namespace tilewright {

/// Sizes that traffic depends on: sequences of equal length, at the problem's bounds.
struct TrafficShape {
  Index sequences = 1;     ///< batch * heads: what is computed apart
  Index kv_sequences = 1;  ///< batch * kv_heads
  /// Query heads of one kv head whose rows share a tile, token by token.
  Index packed_heads = 1;
  Index score_bytes = 0;     ///< of S and P in full, off chip; 0: element_bytes
  Index partial_floats = 1;  ///< a row's part of a split result beside O: its LSE, or max and sum
  Index qk_dim = 0;
  Index v_dim = 0;
  Index element_bytes = 4;  ///< of q, k, v
  Index o_bytes = 4;
  schedule::MaskRule rule;
};

TrafficShape traffic_shape(const AttentionProblem& problem);

/// What crosses between the matrix unit's stores and the vector unit's, if that way leads off chip:
/// scores, probabilities, and each key tile's contribution to O.
struct HandOff {
  bool s = false;
  bool p = false;
  bool o = false;

  bool operator==(const HandOff&) const = default;
};

/// Tokens of a query tile: its rows are shared by the packed heads.
constexpr Index tile_tokens(const TrafficShape& shape, const Tile& tile) {
  return schedule::max(1, tile.q_rows / shape.packed_heads);
}

/// How often the key walks of one query head are taken: once for each set of packed heads.
constexpr Index key_walks(const TrafficShape& shape) {
  if (shape.kv_sequences == 0) return 0;
  return shape.kv_sequences *
         schedule::ceil_div(shape.sequences / shape.kv_sequences, shape.packed_heads);
}

/// Query tiles outside: Q and O once, K and V once a query tile. More than one split writes and
/// reads partial results in fp32.
Traffic q_outer_traffic(const TrafficShape& shape, const Tile& tile, Index kv_splits,
                        const HandOff& hand_off);

/// Key tiles outside: K and V once; Q, and O with its row maxima and sums in fp32, once a key tile.
/// The zeros that O starts from are not counted.
Traffic kv_outer_traffic(const TrafficShape& shape, const Tile& tile);

/// How the unfused schedule makes P from S.
struct StandardSoftmax {
  bool row_fits = true;    ///< a row of S fits on chip; else S is read twice
  bool mask_fused = true;  ///< scale and mask are applied on the way; else by a pass of their own
};

/// S = QK^T, P = softmax(S), O = PV, each in full, S and P in the operands' type; no tile is
/// skipped, whatever the mask.
Traffic standard_traffic(const TrafficShape& shape, const Tile& tile,
                         const StandardSoftmax& softmax);

/// The least that any schedule moves: every operand once.
Traffic compulsory_traffic(const TrafficShape& shape);

}  // namespace tilewright
