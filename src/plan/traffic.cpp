// src/plan/traffic.cpp: the closed forms.
#include "plan/traffic.h"

#include <string>
#include <utility>

#include "schedule/tile_walk.h"

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::min;

constexpr Index kFp32Bytes = 4;

/// Collects the tensors that move at all.
class TrafficList {
 public:
  void add(std::string tensor, Index read, Index written) {
    if (read == 0 && written == 0) return;
    traffic_.tensors.push_back({std::move(tensor), read, written});
  }
  Traffic take() { return std::move(traffic_); }

 private:
  Traffic traffic_;
};

/// Rows of Q that splits load: once for every part that has a key tile to visit.
Index split_q_rows(const schedule::MaskRule& rule, Index tokens, Index kv_rows, Index splits) {
  Index rows = 0;
  for (Index begin = 0; begin < rule.q_len; begin += tokens) {
    const Index end = min(begin + tokens, rule.q_len);
    rows +=
        min(splits, schedule::make_tile_walk(rule, begin, end, kv_rows).tiles()) * (end - begin);
  }
  return rows;
}

}  // namespace

TrafficShape traffic_shape(const AttentionProblem& problem) {
  const AttentionSpec& spec = problem.spec();
  TrafficShape shape;
  shape.sequences = spec.batch * spec.heads;
  shape.kv_sequences = spec.batch * spec.kv_heads;
  shape.qk_dim = spec.qk_dim;
  shape.v_dim = spec.v_dim;
  shape.element_bytes = static_cast<Index>(size_bytes(spec.dtype));
  shape.o_bytes = static_cast<Index>(size_bytes(problem.o_dtype()));
  shape.rule = schedule::make_mask_rule(problem.q_len(), problem.kv_len(), spec.mask.causal,
                                        spec.mask.diagonal == Diagonal::bottom_right,
                                        spec.mask.window_left, spec.mask.window_right);
  return shape;
}

Traffic q_outer_traffic(const TrafficShape& s, const Tile& tile, Index kv_splits,
                        const HandOff& hand_off) {
  const Index tokens = tile_tokens(s, tile);
  const Index walks = key_walks(s);
  const WalkSums sums = walk_sums(s.rule, tokens, tile.kv_rows);
  const Index q_rows =
      kv_splits > 1 ? split_q_rows(s.rule, tokens, tile.kv_rows, kv_splits) : sums.q_rows;
  const Index rows = s.sequences * s.rule.q_len;
  TrafficList list;
  list.add("q", s.sequences * q_rows * s.qk_dim * s.element_bytes, 0);
  list.add("k", walks * sums.keys * s.qk_dim * s.element_bytes, 0);
  list.add("v", walks * sums.keys * s.v_dim * s.element_bytes, 0);
  const Index product = hand_off.o ? s.sequences * sums.pair_rows * s.v_dim * kFp32Bytes : 0;
  list.add("o", product, product + rows * s.v_dim * s.o_bytes);
  list.add("lse", 0, rows * kFp32Bytes);
  if (kv_splits > 1) {
    const Index partials = kv_splits * rows * (s.v_dim + s.partial_floats) * kFp32Bytes;
    list.add("partials", partials, partials);
  }
  const Index scores = s.sequences * sums.scores;
  if (hand_off.s) list.add("s", scores * kFp32Bytes, scores * kFp32Bytes);
  if (hand_off.p) list.add("p", scores * s.element_bytes, scores * s.element_bytes);
  return list.take();
}

Traffic kv_outer_traffic(const TrafficShape& s, const Tile& tile) {
  const WalkSums sums = walk_sums(s.rule, tile.q_rows, tile.kv_rows);
  const Index rows = s.sequences * sums.pair_rows;
  const Index keys = s.sequences * sums.distinct_keys;
  TrafficList list;
  list.add("q", rows * s.qk_dim * s.element_bytes, 0);
  list.add("k", keys * s.qk_dim * s.element_bytes, 0);
  list.add("v", keys * s.v_dim * s.element_bytes, 0);
  list.add("o", rows * s.v_dim * kFp32Bytes, rows * s.v_dim * kFp32Bytes);
  list.add("lse", rows * 2 * kFp32Bytes, rows * 2 * kFp32Bytes);
  return list.take();
}

Traffic standard_traffic(const TrafficShape& s, const Tile& tile, const StandardSoftmax& softmax) {
  const Index kv_len = s.rule.kv_len;
  const Index rows = s.sequences * s.rule.q_len;
  const Index keys = s.sequences * ceil_div(s.rule.q_len, tile.q_rows) * kv_len;
  const Index scores = rows * kv_len * (s.score_bytes > 0 ? s.score_bytes : s.element_bytes);
  const Index mask_passes = softmax.mask_fused ? 0 : 1;
  const Index softmax_reads = softmax.row_fits ? 1 : 2;
  TrafficList list;
  list.add("q", kv_len > 0 ? rows * s.qk_dim * s.element_bytes : 0, 0);
  list.add("k", keys * s.qk_dim * s.element_bytes, 0);
  list.add("v", keys * s.v_dim * s.element_bytes, 0);
  list.add("o", 0, rows * s.v_dim * s.o_bytes);
  list.add("lse", 0, rows * kFp32Bytes);
  list.add("s", (mask_passes + softmax_reads) * scores, (mask_passes + 1) * scores);
  list.add("p", scores, scores);
  return list.take();
}

Traffic compulsory_traffic(const TrafficShape& s) {
  TrafficList list;
  const Index q_len = s.rule.q_len;
  const WalkSums sums = walk_sums(s.rule, schedule::max(q_len, 1), 1);
  list.add("q", s.sequences * sums.q_rows * s.qk_dim * s.element_bytes, 0);
  list.add("k", s.kv_sequences * sums.distinct_keys * s.qk_dim * s.element_bytes, 0);
  list.add("v", s.kv_sequences * sums.distinct_keys * s.v_dim * s.element_bytes, 0);
  list.add("o", 0, s.sequences * q_len * s.v_dim * s.o_bytes);
  list.add("lse", 0, s.sequences * q_len * kFp32Bytes);
  return list.take();
}

}  // namespace tilewright
