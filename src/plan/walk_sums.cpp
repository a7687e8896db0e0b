// src/plan/walk_sums.cpp: sums of clamped, floored lines.
#include "plan/walk_sums.h"

#include "schedule/tile_walk.h"

namespace tilewright {
namespace {

using schedule::ceil_div;
using schedule::clamp;
using schedule::max;
using schedule::min;

constexpr Index floor_div(Index a, Index b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// Smallest i with step * i + offset >= bound.
constexpr Index first_reaching(Index bound, Index step, Index offset) {
  return -floor_div(offset - bound, step);
}

/// Sum over i in [begin, end) of floor(clamp(step * i + offset, low, high) / divisor), low >= 0.
Index clamped_floor_sum(Index begin, Index end, Index step, Index offset, Index low, Index high,
                        Index divisor) {
  if (end <= begin) return 0;
  const Index rising = clamp(first_reaching(low, step, offset), begin, end);
  const Index full = clamp(first_reaching(high, step, offset), rising, end);
  Index sum = (rising - begin) * (low / divisor) + (end - full) * (high / divisor);
  if (full > rising) sum += floor_sum(full - rising, divisor, step, step * rising + offset);
  return sum;
}

}  // namespace

// Takes whole quotients out, then exchanges the axes, as Euclid's algorithm does.
Index floor_sum(Index count, Index divisor, Index step, Index offset) {
  Index sum = 0;
  while (count > 0) {
    sum += (step / divisor) * (count * (count - 1) / 2) + (offset / divisor) * count;
    step %= divisor;
    offset %= divisor;
    const Index top = step * count + offset;
    if (top < divisor) break;
    count = top / divisor;
    offset = top % divisor;
    const Index swap = divisor;
    divisor = step;
    step = swap;
  }
  return sum;
}

WalkSums walk_sums(const schedule::MaskRule& rule, Index q_rows, Index kv_rows) {
  WalkSums sums;
  const Index n = rule.kv_len;
  if (rule.q_len <= 0 || n <= 0) return sums;
  const Index whole = rule.q_len / q_rows;  // query tiles that are not ragged
  const Index kv_tiles = ceil_div(n, kv_rows);
  const Index missing = kv_tiles * kv_rows - n;  // rows that the last key tile lacks

  // The walk of tile i runs over keys [clamp(i * q_rows + low), clamp((i + 1) * q_rows + high)).
  // Tiles with an empty walk lie before `first` (their end is 0) or from `last` (they begin at n).
  const Index first = clamp(first_reaching(1, q_rows, q_rows + rule.high), 0, whole);
  const Index last = clamp(first_reaching(n, q_rows, rule.low), first, whole);
  const auto ends = [&](Index begin, Index end) {
    return clamped_floor_sum(begin, end, q_rows, q_rows + rule.high + kv_rows - 1, kv_rows - 1,
                             n + kv_rows - 1, kv_rows);
  };
  const auto begins = [&](Index begin, Index end) {
    return clamped_floor_sum(begin, end, q_rows, rule.low, 0, n, kv_rows);
  };
  sums.tiles = ends(first, last) - begins(first, last);
  // Tiles whose walk ends in the last, shorter key tile.
  const Index reaching =
      last -
      clamp(first_reaching((kv_tiles - 1) * kv_rows + 1, q_rows, q_rows + rule.high), first, last);
  sums.keys = sums.tiles * kv_rows - reaching * missing;
  sums.q_tiles = last - first;
  sums.q_rows = sums.q_tiles * q_rows;
  sums.scores = sums.keys * q_rows;
  sums.pair_rows = sums.tiles * q_rows;

  Index key_begin = n;
  Index key_end = 0;
  const auto include = [&](Index tile) {
    const Index q_begin = tile * q_rows;
    const Index q_end = min(q_begin + q_rows, rule.q_len);
    const schedule::TileWalk walk = schedule::make_tile_walk(rule, q_begin, q_end, kv_rows);
    if (walk.tiles() == 0) return walk;
    key_begin = min(key_begin, walk.first * kv_rows);
    key_end = max(key_end, min(walk.end * kv_rows, n));
    sums.most_tiles = max(sums.most_tiles, walk.tiles());
    return walk;
  };
  if (last > first) {
    include(first);
    include(last - 1);
    // Walks grow until their end is clamped and shrink once their begin is not: look at both
    // places.
    const Index turns[] = {first_reaching(n, q_rows, q_rows + rule.high),
                           first_reaching(0, q_rows, rule.low)};
    for (const Index turn : turns) {
      include(clamp(turn - 1, first, last - 1));
      include(clamp(turn, first, last - 1));
    }
  }
  if (whole * q_rows < rule.q_len) {
    const Index rows = rule.q_len - whole * q_rows;
    const schedule::TileWalk walk = include(whole);
    if (walk.tiles() > 0) {
      const Index keys = min(walk.end * kv_rows, n) - walk.first * kv_rows;
      sums.tiles += walk.tiles();
      sums.keys += keys;
      sums.q_tiles += 1;
      sums.q_rows += rows;
      sums.scores += keys * rows;
      sums.pair_rows += walk.tiles() * rows;
    }
  }
  // Neighbouring walks touch, so what is visited is one interval.
  sums.distinct_keys = key_end > key_begin ? key_end - key_begin : 0;
  return sums;
}

}  // namespace tilewright
