// src/backend/simulator/standard.cpp: S, P and O one after the other, each in full off chip.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/simulator/schedules.h"

namespace tilewright::simulator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Calls visit(begin, end) for each tile of a length.
template <typename Visit>
void each_tile(Index length, Index rows, Visit visit) {
  for (Index begin = 0; begin < length; begin += rows) {
    visit(begin, schedule::min(begin + rows, length));
  }
}

/// P's tiles lie where they are placed, or where S's do.
std::vector<Reservation> hold_p(Run& run, Index rows, Index keys) {
  auto held = run.unit.hold(TileTensor::p, rows, keys);
  return held.empty() ? run.unit.hold(TileTensor::s, rows, keys) : std::move(held);
}

void write_scores(Run& run, Index batch, Index head) {
  each_tile(run.shape.rule.q_len, run.forward.tile.q_rows, [&](Index begin, Index end) {
    if (run.shape.rule.kv_len == 0) return;
    const Rows rows = {batch, head, begin, end};
    const auto held_q = run.unit.hold(TileTensor::q, rows.count(), 0);
    const Matrix q = run.q.read(rows);
    each_tile(run.shape.rule.kv_len, run.forward.tile.kv_rows, [&](Index first, Index last) {
      const auto held_k = run.unit.hold(TileTensor::k, 0, last - first);
      const auto held_s = run.unit.hold(TileTensor::s, rows.count(), last - first);
      const Matrix k = run.k.read({batch, run.kv_head(head), first, last});
      Matrix dots = run.matrix(rows.count(), k.rows);
      for (Index i = 0; run.has_numbers && i < dots.rows; ++i) {
        for (Index j = 0; j < dots.columns; ++j) {
          for (Index d = 0; d < q.columns; ++d) dots.at(i, j) += q.at(i, d) * k.at(j, d);
        }
      }
      run.s.write(rows, first, dots);
    });
  });
}

/// Scale and mask of a stretch of one row.
void finish_scores(Run& run, Index query, Index first_key, Matrix& row) {
  for (Index j = 0; run.has_numbers && j < row.columns; ++j) {
    const bool visible = run.shape.rule.visible(query, first_key + j);
    row.at(0, j) = visible ? run.score(row.at(0, j)) : -kInfinity;
  }
}

/// Softmax of one row, a stretch of keys at a time: all of them where a row fits on chip, else once
/// for maximum and sum and once more for the probabilities.
void softmax_row(Run& run, const Rows& row) {
  const Index kv_len = run.shape.rule.kv_len;
  const Index stretch = run.softmax.row_fits ? kv_len : run.forward.tile.kv_rows;
  RowState state(1);
  const auto held_state = run.unit.hold_row_state(1);
  Matrix lse(1, 1);
  if (!run.softmax.mask_fused) {
    each_tile(kv_len, stretch, [&](Index first, Index last) {
      const auto held = run.unit.hold_bytes(TileTensor::s, "scores of a row", (last - first) * 4);
      Matrix part = run.s.read(row, first, last - first);
      finish_scores(run, row.begin, first, part);
      run.s.write(row, first, part);
    });
  }
  const auto read = [&](Index first, Index last) {
    Matrix part = run.s.read(row, first, last - first);
    if (run.softmax.mask_fused) finish_scores(run, row.begin, first, part);
    return part;
  };
  const auto write = [&](Index first, const Matrix& scores) {
    Matrix p(1, scores.columns);
    const double log_sum = state.lse(0);
    for (Index j = 0; run.has_numbers && j < p.columns; ++j) {
      p.at(0, j) = log_sum == -kInfinity ? 0 : std::exp(scores.at(0, j) - log_sum);
    }
    run.p.write(row, first, p);
  };
  each_tile(kv_len, std::max<Index>(stretch, 1), [&](Index first, Index last) {
    const auto held = run.unit.hold_bytes(TileTensor::s, "scores of a row", (last - first) * 4);
    const Matrix scores = read(first, last);
    Matrix exponentials = scores;
    state.absorb(exponentials);
    if (run.softmax.row_fits) write(first, scores);
  });
  if (!run.softmax.row_fits) {
    each_tile(kv_len, stretch, [&](Index first, Index last) {
      const auto held = run.unit.hold_bytes(TileTensor::s, "scores of a row", (last - first) * 4);
      write(first, read(first, last));
    });
  }
  lse.at(0, 0) = state.lse(0);
  run.lse.write(row, lse);
}

void write_output(Run& run, Index batch, Index head) {
  each_tile(run.shape.rule.q_len, run.forward.tile.q_rows, [&](Index begin, Index end) {
    const Rows rows = {batch, head, begin, end};
    const auto held_o = run.unit.hold(TileTensor::o, rows.count(), 0);
    Matrix o(rows.count(), run.shape.v_dim);
    each_tile(run.shape.rule.kv_len, run.forward.tile.kv_rows, [&](Index first, Index last) {
      const auto held_v = run.unit.hold(TileTensor::v, 0, last - first);
      const auto held_p = hold_p(run, rows.count(), last - first);
      const Matrix v = run.v.read({batch, run.kv_head(head), first, last});
      multiply_add(run.p.read(rows, first, last - first), v, o);
    });
    run.o.write(rows, o);
  });
}

}  // namespace

void run_standard(Run& run) {
  for (Index batch = 0; batch < run.batch(); ++batch) {
    for (Index head = 0; head < run.heads(); ++head) {
      write_scores(run, batch, head);
      for (Index i = 0; i < run.shape.rule.q_len; ++i) softmax_row(run, {batch, head, i, i + 1});
      write_output(run, batch, head);
    }
  }
}

}  // namespace tilewright::simulator
