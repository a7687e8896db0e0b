// src/backend/simulator/q_outer.cpp: each query tile walks its keys (FlashAttention-2 order).
#include <cmath>
#include <limits>

#include "backend/simulator/schedules.h"
#include "schedule/tile_walk.h"

namespace tilewright::simulator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The packed heads' rows of one query tile against one part of its keys.
class QueryTile {
 public:
  QueryTile(Run& run, Index batch, Index first_head, Index heads, Index begin, Index end)
      : run_(run), batch_(batch), first_head_(first_head), begin_(begin), end_(end) {
    for (Index h = 0; h < heads; ++h) {
      state_.emplace_back(end - begin);
      o_.push_back(run.matrix(end - begin, run.shape.v_dim));
    }
  }

  void walk(const schedule::TileWalk& part) {
    if (part.tiles() == 0) return;
    const auto held_q = run_.unit.hold(TileTensor::q, rows(), 0);
    const auto held_o = run_.unit.hold(TileTensor::o, rows(), 0);
    const auto held_state = run_.unit.hold_row_state(rows());
    std::vector<Matrix> q;
    for (Index h = 0; h < heads(); ++h) q.push_back(run_.q.read(at(h)));
    for (Index tile = part.first; tile < part.end; ++tile) visit(tile, q);
  }

  /// The result, where the keys are not split.
  void write() {
    for (Index h = 0; h < heads(); ++h) {
      normalise(h);
      run_.o.write(at(h), o_[static_cast<std::size_t>(h)]);
      Matrix lse(end_ - begin_, 1);
      for (Index i = 0; i < lse.rows; ++i) lse.at(i, 0) = state(h).lse(i);
      run_.lse.write(at(h), lse);
    }
  }

  /// One split's result: O and LSE, or O before division with maximum and sum.
  void write_partial(Index split) {
    const Index dim = run_.shape.v_dim;
    const bool divided = run_.shape.partial_floats == 1;
    for (Index h = 0; h < heads(); ++h) {
      if (divided) normalise(h);
      Matrix partial(end_ - begin_, dim + run_.shape.partial_floats);
      for (Index i = 0; run_.has_numbers && i < partial.rows; ++i) {
        for (Index d = 0; d < dim; ++d) {
          partial.at(i, d) = o_[static_cast<std::size_t>(h)].at(i, d);
        }
        const auto row = static_cast<std::size_t>(i);
        partial.at(i, dim) = divided ? state(h).lse(i) : state(h).max[row];
        if (!divided) partial.at(i, dim + 1) = state(h).sum[row];
      }
      Rows rows = at(h);
      rows.batch += split * run_.batch();
      run_.partials.write(rows, partial);
    }
  }

 private:
  Index heads() const { return static_cast<Index>(state_.size()); }
  Index rows() const { return (end_ - begin_) * heads(); }
  Rows at(Index h) const { return {batch_, first_head_ + h, begin_, end_}; }
  RowState& state(Index h) { return state_[static_cast<std::size_t>(h)]; }

  void visit(Index tile, const std::vector<Matrix>& q) {
    const Index first = tile * run_.forward.tile.kv_rows;
    const Index end = schedule::min(first + run_.forward.tile.kv_rows, run_.shape.rule.kv_len);
    const Index keys = end - first;
    const auto held_k = run_.unit.hold(TileTensor::k, 0, keys);
    const auto held_v = run_.unit.hold(TileTensor::v, 0, keys);
    const auto held_s = run_.unit.hold(TileTensor::s, rows(), keys);
    const auto held_p = run_.unit.hold(TileTensor::p, rows(), keys);
    const Rows key_rows = {batch_, run_.kv_head(first_head_), first, end};
    const Matrix k = run_.k.read(key_rows);
    const Matrix v = run_.v.read(key_rows);
    const HandOff& hand_off = run_.unit.placement().hand_off;
    for (Index h = 0; h < heads(); ++h) {
      Matrix& o = o_[static_cast<std::size_t>(h)];
      Matrix p = run_.scores(q[static_cast<std::size_t>(h)], k, begin_, first);
      if (hand_off.s) run_.s.pass_through(p);
      const std::vector<double> keep = state(h).absorb(p);
      if (hand_off.p) run_.p.pass_through(p);
      Matrix product = run_.matrix(o.rows, o.columns);
      multiply_add(p, v, product);
      if (hand_off.o) run_.o.pass_through(product, 4);
      for (Index i = 0; run_.has_numbers && i < o.rows; ++i) {
        for (Index d = 0; d < o.columns; ++d) {
          o.at(i, d) = o.at(i, d) * keep[static_cast<std::size_t>(i)] + product.at(i, d);
        }
      }
    }
  }

  void normalise(Index h) {
    Matrix& o = o_[static_cast<std::size_t>(h)];
    for (Index i = 0; run_.has_numbers && i < o.rows; ++i) {
      const double sum = state(h).sum[static_cast<std::size_t>(i)];
      for (Index d = 0; d < o.columns; ++d) o.at(i, d) = sum > 0 ? o.at(i, d) / sum : 0;
    }
  }

  Run& run_;
  Index batch_, first_head_, begin_, end_;
  std::vector<RowState> state_;
  std::vector<Matrix> o_;
};

/// Splits' results become one, in the order of their index.
void combine(Run& run, const Rows& rows) {
  const Index dim = run.shape.v_dim;
  const Index splits = run.forward.kv_splits;
  const bool divided = run.shape.partial_floats == 1;
  std::vector<Matrix> parts;
  for (Index split = 0; split < splits; ++split) {
    Rows part = rows;
    part.batch += split * run.batch();
    parts.push_back(run.partials.read(part));
  }
  Matrix o(rows.count(), dim);
  Matrix lse(rows.count(), 1, -kInfinity);
  for (Index i = 0; run.has_numbers && i < o.rows; ++i) {
    double top = -kInfinity;
    for (const Matrix& part : parts) top = std::max(top, part.at(i, dim));
    if (top == -kInfinity) continue;
    double sum = 0;
    for (const Matrix& part : parts) {
      const double scale = std::exp(part.at(i, dim) - top);
      sum += scale * (divided ? 1 : part.at(i, dim + 1));
      for (Index d = 0; d < dim; ++d) o.at(i, d) += scale * part.at(i, d);
    }
    for (Index d = 0; d < dim; ++d) o.at(i, d) /= sum;
    lse.at(i, 0) = top + std::log(sum);
  }
  run.o.write(rows, o);
  run.lse.write(rows, lse);
}

}  // namespace

void run_q_outer(Run& run) {
  const Index tokens = tile_tokens(run.shape, run.forward.tile);
  const Index group = run.problem.group();
  const Index splits = run.forward.kv_splits;
  const schedule::MaskRule& rule = run.shape.rule;
  for (Index batch = 0; batch < run.batch(); ++batch) {
    for (Index first_head = 0; first_head < run.heads();) {
      // Packed heads share a kv head; a group's last tile may have fewer.
      const Index in_group = first_head % group;
      const Index heads = schedule::min(run.shape.packed_heads, group - in_group);
      for (Index begin = 0; begin < rule.q_len; begin += tokens) {
        const Index end = schedule::min(begin + tokens, rule.q_len);
        const auto walk = schedule::make_tile_walk(rule, begin, end, run.forward.tile.kv_rows);
        for (Index split = 0; split < splits; ++split) {
          QueryTile tile(run, batch, first_head, heads, begin, end);
          tile.walk(schedule::split_walk(walk, split, splits));
          if (splits == 1) {
            tile.write();
          } else {
            tile.write_partial(split);
          }
        }
        for (Index h = 0; splits > 1 && h < heads; ++h) {
          combine(run, {batch, first_head + h, begin, end});
        }
      }
      first_head += heads;
    }
  }
}

}  // namespace tilewright::simulator
