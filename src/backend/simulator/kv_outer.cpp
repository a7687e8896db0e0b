// src/backend/simulator/kv_outer.cpp: each key tile walks the queries (FlashAttention-1 order).
#include "backend/simulator/schedules.h"
#include "schedule/tile_walk.h"

namespace tilewright::simulator {
namespace {

/// Takes the scores of one block into O and its state, as they lie off chip.
void absorb(const Run& run, const Matrix& p_scores, const Matrix& v, Matrix& o, Matrix& saved) {
  RowState state(o.rows);
  for (Index i = 0; i < o.rows; ++i) {
    state.max[static_cast<std::size_t>(i)] = saved.at(i, 0);
    state.sum[static_cast<std::size_t>(i)] = saved.at(i, 1);
  }
  const std::vector<double> sums = state.sum;
  Matrix p = p_scores;
  const std::vector<double> keep = state.absorb(p);
  Matrix product = run.matrix(o.rows, o.columns);
  multiply_add(p, v, product);
  for (Index i = 0; i < o.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (Index d = 0; d < o.columns; ++d) {
      // O off chip is divided by the sum so far.
      const double whole = o.at(i, d) * sums[row] * keep[row] + product.at(i, d);
      o.at(i, d) = state.sum[row] > 0 ? whole / state.sum[row] : 0;
    }
    saved.at(i, 0) = state.max[row];
    saved.at(i, 1) = state.sum[row];
  }
}

/// One query tile meets one key tile: O, maximum and sum come from off chip and go back.
void meet(Run& run, const Rows& rows, const Matrix& k, const Matrix& v, Index first_key) {
  const auto held_q = run.unit.hold(TileTensor::q, rows.count(), 0);
  const auto held_o = run.unit.hold(TileTensor::o, rows.count(), 0);
  const auto held_state = run.unit.hold_row_state(rows.count());
  const auto held_s = run.unit.hold(TileTensor::s, rows.count(), k.rows);
  const auto held_p = run.unit.hold(TileTensor::p, rows.count(), k.rows);
  const Matrix q = run.q.read(rows);
  Matrix o = run.o.read(rows);
  Matrix saved = run.lse.read(rows);
  if (run.has_numbers) absorb(run, run.scores(q, k, rows.begin, first_key), v, o, saved);
  run.o.write(rows, o);
  run.lse.write(rows, saved);
}

}  // namespace

void run_kv_outer(Run& run) {
  const Tile& tile = run.forward.tile;
  const schedule::MaskRule& rule = run.shape.rule;
  for (Index batch = 0; batch < run.batch(); ++batch) {
    for (Index head = 0; head < run.heads(); ++head) {
      for (Index first = 0; first < rule.kv_len; first += tile.kv_rows) {
        const Index end = schedule::min(first + tile.kv_rows, rule.kv_len);
        const auto sees = [&](Index begin) {
          const Index q_end = schedule::min(begin + tile.q_rows, rule.q_len);
          const auto walk = schedule::make_tile_walk(rule, begin, q_end, tile.kv_rows);
          return first / tile.kv_rows >= walk.first && first / tile.kv_rows < walk.end;
        };
        bool any = false;
        for (Index begin = 0; begin < rule.q_len; begin += tile.q_rows) any = any || sees(begin);
        if (!any) continue;
        const auto held_k = run.unit.hold(TileTensor::k, 0, end - first);
        const auto held_v = run.unit.hold(TileTensor::v, 0, end - first);
        const Rows keys = {batch, run.kv_head(head), first, end};
        const Matrix k = run.k.read(keys);
        const Matrix v = run.v.read(keys);
        for (Index begin = 0; begin < rule.q_len; begin += tile.q_rows) {
          if (!sees(begin)) continue;
          const Index q_end = schedule::min(begin + tile.q_rows, rule.q_len);
          meet(run, {batch, head, begin, q_end}, k, v, first);
        }
      }
    }
  }
}

}  // namespace tilewright::simulator
