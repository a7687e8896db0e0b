// tests/plan/walk_sums_test.cpp: closed sums equal a walk over every tile.
#include "plan/walk_sums.h"

#include <gtest/gtest.h>

#include <random>

#include "schedule/tile_walk.h"

namespace tilewright {
namespace {

/// The same sums, tile by tile.
WalkSums walked(const schedule::MaskRule& rule, Index q_rows, Index kv_rows) {
  WalkSums sums;
  std::vector<bool> seen(static_cast<std::size_t>(rule.kv_len), false);
  for (Index begin = 0; begin < rule.q_len && rule.kv_len > 0; begin += q_rows) {
    const Index end = schedule::min(begin + q_rows, rule.q_len);
    const auto walk = schedule::make_tile_walk(rule, begin, end, kv_rows);
    if (walk.tiles() == 0) continue;
    sums.q_tiles += 1;
    sums.q_rows += end - begin;
    sums.most_tiles = schedule::max(sums.most_tiles, walk.tiles());
    for (Index tile = walk.first; tile < walk.end; ++tile) {
      const Index keys = schedule::min((tile + 1) * kv_rows, rule.kv_len) - tile * kv_rows;
      sums.tiles += 1;
      sums.keys += keys;
      sums.scores += keys * (end - begin);
      sums.pair_rows += end - begin;
      for (Index key = 0; key < keys; ++key)
        seen[static_cast<std::size_t>(tile * kv_rows + key)] = true;
    }
  }
  for (const bool key : seen) sums.distinct_keys += key ? 1 : 0;
  return sums;
}

TEST(WalkSums, EqualAWalkOverEveryTile) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(random);
  };
  for (int round = 0; round < 20000; ++round) {
    const Index q_len = draw(0, 90);
    const Index kv_len = draw(0, 90);
    const bool causal = draw(0, 1) == 1;
    const bool bottom_right = draw(0, 1) == 1;
    const Index left = draw(-1, 40);
    const Index right = draw(-1, 40);
    const auto rule = schedule::make_mask_rule(q_len, kv_len, causal, bottom_right, left, right);
    const Index q_rows = draw(1, 30);
    const Index kv_rows = draw(1, 30);
    SCOPED_TRACE(::testing::Message()
                 << q_len << " queries, " << kv_len << " keys, causal " << causal
                 << ", bottom right " << bottom_right << ", window " << left << "," << right
                 << ", tile " << q_rows << "x" << kv_rows);
    const WalkSums closed = walk_sums(rule, q_rows, kv_rows);
    const WalkSums exact = walked(rule, q_rows, kv_rows);
    ASSERT_EQ(closed.tiles, exact.tiles);
    ASSERT_EQ(closed.keys, exact.keys);
    ASSERT_EQ(closed.scores, exact.scores);
    ASSERT_EQ(closed.pair_rows, exact.pair_rows);
    ASSERT_EQ(closed.q_tiles, exact.q_tiles);
    ASSERT_EQ(closed.q_rows, exact.q_rows);
    ASSERT_EQ(closed.distinct_keys, exact.distinct_keys);
    // Walks differ by a tile according to how their ends meet the grid of key tiles.
    ASSERT_LE(closed.most_tiles, exact.most_tiles);
    ASSERT_GE(closed.most_tiles + 1, exact.most_tiles);
  }
}

TEST(WalkSums, FloorSumEqualsItsDefinition) {
  for (Index count = 0; count < 12; ++count) {
    for (Index divisor = 1; divisor < 9; ++divisor) {
      for (Index step = 0; step < 9; ++step) {
        for (Index offset = 0; offset < 9; ++offset) {
          Index sum = 0;
          for (Index i = 0; i < count; ++i) sum += (step * i + offset) / divisor;
          ASSERT_EQ(floor_sum(count, divisor, step, offset), sum);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
