// src/schedule/cpu_forward.h: the CPU forward family: legal tiles and the bytes a core's tile set
// needs.
//
// Freestanding and constexpr: the one owner of these facts, read by the planner and the kernels.
//
// How the kernels walk a tile, and so what a good tile is:
// - A task is q_rows rows (query tokens x the query heads that share one kv head, token by token)
//   against a range of keys. Q is packed once a task, K and V once a key tile, all of it in the
//   worker's scratch: q, k, v and o should fit L2 together, with room to spare.
// - Rows are taken kCpuRowBlock at a time (fewer on 16-register machines, and at the end): such a
//   block's scores against the whole key tile stay in L1 (score_bytes) while K and V stream past
//   from L2. q_rows best is a multiple of kCpuRowBlock; any other is legal.
// - Under a mask, rows that see none of a tile's keys are skipped a row block at a time, and keys
// that
//   a row block does not see 32 at a time: large tiles waste little along a diagonal.
// - Packing costs about as much as 4 to 8 rows do, so q_rows of 96 and more hide it; it does not
//   shrink with kv_rows. kv_rows pays for rescaling O (3 of kv_rows parts): 64 and more hide it.
#pragma once

#include "schedule/mask_rule.h"

namespace tilewright::schedule {

/// Keys are packed in vectors: kv_rows is a multiple of this (the most lanes of any vector).
inline constexpr Index kCpuKeyMultiple = 16;
/// The largest kv_rows, which bounds a score block.
inline constexpr Index kCpuMaxKeyRows = 512;
inline constexpr Index kCpuMaxQueryRows = 4096;
/// Rows that the widest microkernel takes at once.
inline constexpr Index kCpuRowBlock = 12;
/// At most this many rows of one kv head read K and V in place and pack nothing (where dims are
/// whole vectors and dim strides 1).
inline constexpr Index kCpuStreamedRows = 16;
/// Rows that a score block has room for: those of the largest streamed task, whose rows may be of
/// several heads (the largest block of a product, of two matrix tiles, has 32).
inline constexpr Index kCpuScoreRows = 64;
/// Floats between two rows of a score block: odd in cache lines, so that rows spread over L1's
/// sets.
inline constexpr Index kCpuScoreStride = kCpuMaxKeyRows + 16;

constexpr Index round_up(Index value, Index multiple) {
  return ceil_div(value, multiple) * multiple;
}

/// True when the kernels can run this tile: 1..4096 queries by a multiple of 16 keys up to 512.
constexpr bool cpu_forward_legal(Index q_rows, Index kv_rows) {
  return q_rows >= 1 && q_rows <= kCpuMaxQueryRows && kv_rows >= kCpuKeyMultiple &&
         kv_rows <= kCpuMaxKeyRows && kv_rows % kCpuKeyMultiple == 0;
}

/// One core's working set for a q_rows x kv_rows tile, in bytes. operand_bytes is that of an
/// element of Q, K, V and P as multiplied: 4 (widened to fp32) or 2 (bf16 products).
struct CpuForwardFootprint {
  Index q_bytes = 0;      ///< packed query tile
  Index k_bytes = 0;      ///< packed key tile
  Index v_bytes = 0;      ///< packed value tile
  Index score_bytes = 0;  ///< one row block's S, turned into P in place: what L1 holds
  Index o_bytes = 0;      ///< fp32 accumulator
  Index row_bytes = 0;    ///< running max and (one per lane) sums

  constexpr Index total_bytes() const {
    return q_bytes + k_bytes + v_bytes + score_bytes + o_bytes + row_bytes;
  }
};

constexpr CpuForwardFootprint cpu_forward_footprint(Index q_rows, Index kv_rows, Index qk_dim,
                                                    Index v_dim, Index operand_bytes = 4) {
  // Matrix tiles step through 32 bf16 numbers at once.
  const Index step = operand_bytes == 2 ? 32 : 1;
  const Index qk_bytes = round_up(qk_dim, step) * operand_bytes;
  const Index v_width = round_up(v_dim, kCpuKeyMultiple);
  return {q_rows * qk_bytes,
          kv_rows * qk_bytes,
          round_up(kv_rows, step) * v_width * operand_bytes,
          min(q_rows, kCpuRowBlock) * kv_rows * 4,
          q_rows * v_width * 4,
          q_rows * (1 + kCpuKeyMultiple) * 4};
}

/// Scratch that one worker is given in the workspace: its tile set, each part cache-line aligned,
/// the score block at its full stride.
constexpr Index cpu_forward_scratch_bytes(Index q_rows, Index kv_rows, Index qk_dim, Index v_dim,
                                          Index operand_bytes = 4) {
  const CpuForwardFootprint tile =
      cpu_forward_footprint(q_rows, kv_rows, qk_dim, v_dim, operand_bytes);
  // Q (in fp32), O and its rows' ends have room for a streamed task.
  const CpuForwardFootprint streamed =
      cpu_forward_footprint(max(q_rows, kCpuScoreRows), kv_rows, qk_dim, v_dim);
  constexpr Index kLine = 64;
  return round_up(max(tile.q_bytes, kCpuScoreRows * qk_dim * 4), kLine) +
         round_up(tile.k_bytes, kLine) + round_up(tile.v_bytes, kLine) +
         kCpuScoreRows * kCpuScoreStride * 4 + round_up(streamed.o_bytes, kLine) +
         round_up(streamed.row_bytes, kLine) + 4096;
}

/// Partial results of a split call (kv_splits > 1): unnormalised O, max and sum, fp32, for every
/// split of every row. total_rows is AttentionProblem::lse_rows().
constexpr Index cpu_forward_partial_bytes(Index total_rows, Index v_dim, Index kv_splits) {
  return kv_splits > 1 ? round_up(kv_splits * total_rows * (v_dim + 2) * 4, 64) : 0;
}

/// Workspace of a q_outer plan.
constexpr Index cpu_forward_workspace_bytes(Index q_rows, Index kv_rows, Index qk_dim, Index v_dim,
                                            Index workers, Index total_rows, Index kv_splits,
                                            Index operand_bytes = 4) {
  return workers * cpu_forward_scratch_bytes(q_rows, kv_rows, qk_dim, v_dim, operand_bytes) +
         cpu_forward_partial_bytes(total_rows, v_dim, kv_splits);
}

/// The standard schedule keeps one head's S (then P) in the workspace: floats between its rows, a
/// whole number of cache lines, odd so that rows spread over the sets of a cache.
constexpr Index cpu_standard_score_stride(Index kv_len) {
  const Index lines = ceil_div(kv_len, 16) + 1;
  return (lines + 1 - lines % 2) * 16;
}

/// S of one head, and the maximum and sum of each row.
constexpr Index cpu_standard_score_bytes(Index q_len, Index kv_len) {
  return round_up((q_len * (cpu_standard_score_stride(kv_len) + 2)) * 4, 64);
}

/// Workspace of a standard plan, whose workers take q_rows x kv_rows tiles of S.
constexpr Index cpu_standard_workspace_bytes(Index q_rows, Index kv_rows, Index qk_dim, Index v_dim,
                                             Index workers, Index q_len, Index kv_len,
                                             Index operand_bytes = 4) {
  return workers * cpu_forward_scratch_bytes(q_rows, kv_rows, qk_dim, v_dim, operand_bytes) +
         cpu_standard_score_bytes(q_len, kv_len);
}

/// A good tile for a core with this much L2: at most three quarters of it filled, the query tile
/// first made large enough to hide packing.
struct CpuTile {
  Index q_rows = 0;
  Index kv_rows = 0;
};

constexpr CpuTile cpu_forward_default_tile(Index l2_bytes, Index rows, Index qk_dim, Index v_dim,
                                           Index operand_bytes = 4) {
  CpuTile tile{288, 128};
  const auto fits = [&] {
    return cpu_forward_footprint(tile.q_rows, tile.kv_rows, qk_dim, v_dim, operand_bytes)
                   .total_bytes() *
               4 <=
           l2_bytes * 3;
  };
  while (!fits() && tile.kv_rows > 64) tile.kv_rows /= 2;
  while (!fits() && tile.q_rows > kCpuRowBlock) tile.q_rows -= kCpuRowBlock;
  while (!fits() && tile.kv_rows > kCpuKeyMultiple) tile.kv_rows /= 2;
  tile.q_rows = max(1, min(tile.q_rows, rows));
  return tile;
}

}  // namespace tilewright::schedule
