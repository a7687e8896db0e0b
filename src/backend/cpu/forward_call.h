// src/backend/cpu/forward_call.h: one forward call and its tasks, as every instruction set sees
// them.
#pragma once

#include <cstddef>

#include "schedule/cpu_forward.h"
#include "schedule/tile_walk.h"
#include "tilewright/plan.h"

namespace tilewright::cpu {

using schedule::Index;

/// What all workers share.
struct ForwardCall {
  const AttentionProblem& problem;
  const AttentionTensors& tensors;
  Tile tile;
  Index heads_per_tile = 1;     ///< query heads of one group whose rows share a tile
  Index kv_heads_per_task = 1;  ///< neighbours whose few rows walk the keys together
  Index kv_splits = 1;
  float* partials = nullptr;  ///< kv_splits x lse_rows x (v_dim + 2), when split

  // The standard schedule, one head at a time.
  float* scores = nullptr;    ///< [q_len][score_stride]
  Index score_stride = 0;     ///< floats between rows of scores
  float* row_ends = nullptr;  ///< [q_len][2]: maximum and sum

  Index tokens_per_tile() const { return tile.q_rows / heads_per_tile; }
  Index token_tiles() const { return schedule::ceil_div(problem.q_len(), tokens_per_tile()); }
  /// Tasks before splitting: of each head (or heads_per_tile of them) one after another.
  Index tasks() const {
    return problem.spec().batch * schedule::ceil_div(problem.spec().kv_heads, kv_heads_per_task) *
           schedule::ceil_div(problem.group(), heads_per_tile) * token_tiles();
  }
};

/// The rows [token_begin, token_end) x [head, head + heads) of one sequence, against one part of
/// the keys of one kv head. Row r is token token_begin + r / heads of head head + r % heads.
struct ForwardTask {
  Index batch = 0;
  Index head = 0;
  Index heads = 1;
  Index kv_head = 0;
  Index kv_heads = 1;  ///< this one and its neighbours, whose rows follow head by head
  Index token_begin = 0;
  Index token_end = 0;
  Index split = 0;
  Index q_first_row = 0;  ///< of the sequence, when packed
  Index kv_first_row = 0;
  schedule::MaskRule rule;

  Index rows() const { return (token_end - token_begin) * heads; }
  Index token(Index row) const { return token_begin + row / heads; }
  Index head_of(Index row) const { return head + row % heads; }
};

/// Task `index` of call.tasks(); token_end == token_begin when the sequence is shorter. Of each
/// head the longest comes first.
ForwardTask make_task(const ForwardCall& call, Index index, Index split);

/// The part of a task that kv head task.kv_head + index has.
ForwardTask of_kv_head(const ForwardCall& call, const ForwardTask& task, Index index);

/// Where the LSE of a row lies.
Index lse_index(const ForwardCall& call, const ForwardTask& task, Index row);

/// What a row's running maximum and sum come to, its sink added. natural_per_unit: what one unit of
/// max is worth in natural logarithms.
struct RowEnd {
  float scale;  ///< what the unnormalised O is multiplied by
  float lse;
};
RowEnd finish_row(const ForwardCall& call, const ForwardTask& task, Index row, float max, float sum,
                  double natural_per_unit);

}  // namespace tilewright::cpu
