// report/walk.cpp: walks the tiles of a plan, counting bytes and keeping one row's softmax.
#include "report/walk.h"

#include <algorithm>
#include <cmath>

#include "plan/traffic.h"

namespace tilewright::report {
namespace {

using schedule::Index;

constexpr Index kFewTiles = 6;     // fewer show nothing
constexpr Index kManyTiles = 24;   // more in a row or column are too small to see
constexpr Index kDrawnTiles = 12;  // what to draw instead

struct DrawnLengths {
  Index q_len = 0;
  Index kv_len = 0;
};

DrawnLengths drawn_lengths(Index q_len, Index kv_len, const Tile& tile) {
  const Index rows = schedule::ceil_div(q_len, tile.q_rows);
  const Index columns = schedule::ceil_div(kv_len, tile.kv_rows);
  const bool fine = rows <= kManyTiles && columns <= kManyTiles && rows * columns >= kFewTiles;
  if (fine) return {q_len, kv_len};
  if (q_len != kv_len) {
    return {std::min(q_len, kDrawnTiles * tile.q_rows),
            std::min(kv_len, kDrawnTiles * tile.kv_rows)};
  }
  const Index shorter = std::min(tile.q_rows, tile.kv_rows);
  const Index longer = std::max(tile.q_rows, tile.kv_rows);
  if (longer > kManyTiles * shorter) {  // a square of these would be a comb: the last few queries
    return {kDrawnTiles / 2 * tile.q_rows, kDrawnTiles / 2 * tile.kv_rows};
  }
  // Square, with a few tiles along the longer side and not too many along the shorter.
  const Index tokens = std::max(kDrawnTiles * shorter, 3 * longer);
  return {tokens, tokens};
}

// Scores for an example: nearly normal ones.
double example_score(std::int64_t query, std::int64_t key) {
  std::uint64_t bits = static_cast<std::uint64_t>(query) * 0x9e3779b97f4a7c15u +
                       static_cast<std::uint64_t>(key) * 0xc2b2ae3d27d4eb4fu;
  double sum = 0;  // of twelve uniform numbers: nearly normal, variance 1
  for (int i = 0; i < 12; ++i) {
    bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 32;
    sum += static_cast<double>(bits >> 11) * 0x1p-53;
  }
  return sum - 6;
}

/// What the plan's traffic says of the way between matrix and vector unit.
HandOff hand_off_of(const Traffic& traffic) {
  HandOff found;
  for (const TensorTraffic& tensor : traffic.tensors) {
    found.s = found.s || tensor.tensor == "s";
    found.p = found.p || tensor.tensor == "p";
    found.o = found.o || (tensor.tensor == "o" && tensor.bytes_read > 0);
  }
  return found;
}

/// The running maximum and sum of one row.
class RowSoftmax {
 public:
  void add(const schedule::MaskRule& rule, Index query, Index begin, Index end,
           const std::function<double(std::int64_t, std::int64_t)>& score, Step& step) {
    double tile_max = -INFINITY;
    for (Index key = begin; key < end; ++key) {
      if (rule.visible(query, key)) tile_max = std::max(tile_max, score(query, key));
    }
    const double new_max = std::max(max_, tile_max);
    if (new_max > -INFINITY) {
      step.rescale = std::exp(max_ - new_max);
      sum_ *= step.rescale;
      for (Index key = begin; key < end; ++key) {
        if (rule.visible(query, key)) sum_ += std::exp(score(query, key) - new_max);
      }
      max_ = new_max;
      step.max = max_;
    }
    if (tile_max > -INFINITY) step.tile_max = tile_max;
    step.sum = sum_;
  }

 private:
  double max_ = -INFINITY;
  double sum_ = 0;
};

}  // namespace

std::optional<Walk> make_walk(
    const Plan& plan, const std::function<double(std::int64_t query, std::int64_t key)>& score) {
  const ForwardPlan& forward = plan.forward();
  const AttentionSpec& spec = plan.problem.spec();
  const bool walkable = forward.schedule == Schedule::q_outer && forward.tile.q_rows > 0 &&
                        forward.tile.kv_rows > 0 && plan.problem.q_len() > 0 &&
                        plan.problem.kv_len() > 0;
  if (!walkable) return std::nullopt;

  TrafficShape shape = traffic_shape(plan.problem);
  shape.packed_heads = shape.sequences = forward.packed_heads;
  shape.kv_sequences = 1;
  if (plan.family == KernelFamily::cpu_forward) shape.score_bytes = sizeof(float);
  Walk walk;
  walk.heads = forward.packed_heads;
  walk.kv_splits = forward.kv_splits;
  walk.tile = {tile_tokens(shape, forward.tile), forward.tile.kv_rows};
  const DrawnLengths drawn = drawn_lengths(plan.problem.q_len(), plan.problem.kv_len(), walk.tile);
  walk.same_lengths = drawn.q_len == plan.problem.q_len() && drawn.kv_len == plan.problem.kv_len();
  walk.example_scores = !score || !walk.same_lengths;
  std::function<double(std::int64_t, std::int64_t)> row_score = score;
  if (walk.example_scores) {  // a little larger towards the end, so that the maximum rises now and
                              // then
    row_score = [keys = static_cast<double>(drawn.kv_len)](std::int64_t query, std::int64_t key) {
      return example_score(query, key) + 2.5 * static_cast<double>(key) / keys;
    };
  }
  walk.rule = schedule::make_mask_rule(drawn.q_len, drawn.kv_len, spec.mask.causal,
                                       spec.mask.diagonal == Diagonal::bottom_right,
                                       spec.mask.window_left, spec.mask.window_right);

  shape.rule = walk.rule;
  walk.hand_off = hand_off_of(plan.traffic);
  // Written and read back for each score, and for each row of a key tile's part of O.
  const Index score_bytes =
      walk.heads * 2 *
      ((walk.hand_off.s ? Index{sizeof(float)} : 0) + (walk.hand_off.p ? shape.element_bytes : 0));
  const Index part_bytes =
      walk.hand_off.o ? walk.heads * 2 * shape.v_dim * Index{sizeof(float)} : 0;
  walk.standard_bytes = standard_traffic(shape, walk.tile, {}).bytes();
  const Index q_row_bytes = walk.heads * shape.qk_dim * shape.element_bytes;
  const Index kv_row_bytes = (shape.qk_dim + shape.v_dim) * shape.element_bytes;
  const Index lse_bytes = sizeof(float);
  const Index o_row_bytes = walk.heads * (shape.v_dim * shape.o_bytes + lse_bytes);

  std::int64_t bytes = 0;
  for (Index begin = 0; begin < drawn.q_len; begin += walk.tile.q_rows) {
    const Index end = std::min<Index>(begin + walk.tile.q_rows, drawn.q_len);
    const auto q_tile = static_cast<Index>(walk.q_tiles.size());
    const auto tiles = schedule::make_tile_walk(walk.rule, begin, end, walk.tile.kv_rows);
    walk.q_tiles.push_back(tiles);
    RowSoftmax row;
    Step step;
    step.q_tile = q_tile;
    if (tiles.tiles() > 0) {
      step.bytes_so_far = bytes += (end - begin) * q_row_bytes;
      walk.steps.push_back(step);
    }
    for (Index tile = tiles.first; tile < tiles.end; ++tile) {
      const Index key = tile * walk.tile.kv_rows;
      const Index key_end = std::min<Index>(key + walk.tile.kv_rows, drawn.kv_len);
      step.action = Action::visit;
      step.kv_tile = tile;
      step.bytes_so_far = bytes += (key_end - key) * kv_row_bytes +
                                   (end - begin) * ((key_end - key) * score_bytes + part_bytes);
      step.tile_max.reset();
      step.rescale = 1;
      row.add(walk.rule, end - 1, key, key_end, row_score, step);
      walk.steps.push_back(step);
    }
    step.action = Action::store_o;
    step.bytes_so_far = bytes += (end - begin) * o_row_bytes;
    walk.steps.push_back(step);
  }
  return walk;
}

}  // namespace tilewright::report
