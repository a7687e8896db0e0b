// tests/schedule/tile_walk_test.cpp: the tile walk against visiting every key, for all small
// shapes.
#include "schedule/tile_walk.h"

#include <gtest/gtest.h>

#include "brute_force.h"
#include "reference/random.h"

namespace tilewright::schedule {
namespace {

// Every seen key lies in a visited tile; a tile said to be unmasked is seen in full; no tile at
// either end is seen by nobody.
void expect_sound(const SmallMask& mask, Index q_begin, Index q_end, Index kv_rows) {
  const TileWalk walk = make_tile_walk(mask.rule(), q_begin, q_end, kv_rows);
  ASSERT_LE(walk.first, walk.unmasked_first);
  ASSERT_LE(walk.unmasked_first, walk.unmasked_end);
  ASSERT_LE(walk.unmasked_end, walk.end);
  const Index tiles = ceil_div(mask.kv_len, kv_rows);
  for (Index tile = 0; tile < tiles; ++tile) {
    bool some = false;
    bool all = (tile + 1) * kv_rows <= mask.kv_len;
    for (Index i = q_begin; i < q_end; ++i) {
      for (Index j = tile * kv_rows; j < (tile + 1) * kv_rows; ++j) {
        const bool sees = mask.sees(i, j);
        some = some || sees;
        all = all && sees;
      }
    }
    const bool visited = tile >= walk.first && tile < walk.end;
    if (some) {
      ASSERT_TRUE(visited) << mask << " tile " << tile << " of " << kv_rows;
    }
    if (visited) {
      ASSERT_EQ(walk.masked(tile), !all) << mask << " queries " << q_begin << ".." << q_end
                                         << " tile " << tile << " of " << kv_rows;
      if (tile == walk.first || tile == walk.end - 1) {
        ASSERT_TRUE(some) << mask << " queries " << q_begin << ".." << q_end << " tile " << tile
                          << " of " << kv_rows;
      }
    }
  }
  ASSERT_LE(walk.end, tiles) << mask;
}

// Together the splits visit every tile of the walk once, in order, masked as before.
void expect_splits_cover(const SmallMask& mask, Index q_begin, Index q_end, Index kv_rows) {
  const TileWalk walk = make_tile_walk(mask.rule(), q_begin, q_end, kv_rows);
  for (const Index splits : {1, 2, 3, 7}) {
    Index next = walk.first;
    for (Index s = 0; s < splits; ++s) {
      const TileWalk part = split_walk(walk, s, splits);
      ASSERT_EQ(part.first, next) << mask << " split " << s << " of " << splits;
      ASSERT_LE(part.tiles(), ceil_div(walk.tiles(), splits));
      for (Index tile = part.first; tile < part.end; ++tile) {
        ASSERT_EQ(part.masked(tile), walk.masked(tile)) << mask << " tile " << tile;
      }
      next = part.end;
    }
    ASSERT_EQ(next, walk.end) << mask << " splits " << splits;
  }
}

TEST(TileWalk, equals_brute_force_for_all_small_shapes) {
  for_each_small_mask(7, [](const SmallMask& mask) {
    for (const Index kv_rows : {1, 2, 3, 4, 8}) {
      for (const Index q_rows : {1, 2, 3, 8}) {
        for (Index q = 0; q < mask.q_len; q += q_rows) {
          const Index q_end = min(q + q_rows, mask.q_len);
          ASSERT_NO_FATAL_FAILURE(expect_sound(mask, q, q_end, kv_rows));
          ASSERT_NO_FATAL_FAILURE(expect_splits_cover(mask, q, q_end, kv_rows));
        }
      }
    }
  });
}

TEST(TileWalk, equals_brute_force_for_random_larger_shapes) {
  reference::Random random(31);
  for (int i = 0; i < 400; ++i) {
    const auto window = [&] { return random.chance(0.4) ? -1 : random.integer(0, 250); };
    const SmallMask mask{random.integer(1, 200),
                         random.integer(0, 200),
                         random.chance(0.5),
                         random.chance(0.5),
                         window(),
                         window()};
    const Index kv_rows = random.integer(1, 80);
    const Index q_rows = random.integer(1, 80);
    const Index q = random.integer(0, mask.q_len - 1);
    const Index q_end = min(q + q_rows, mask.q_len);
    ASSERT_NO_FATAL_FAILURE(expect_sound(mask, q, q_end, kv_rows));
    ASSERT_NO_FATAL_FAILURE(expect_splits_cover(mask, q, q_end, kv_rows));
  }
}

TEST(TileWalk, no_queries_or_keys_is_no_tile) {
  EXPECT_EQ(make_tile_walk(make_mask_rule(0, 9, false, true, -1, -1), 0, 0, 4).tiles(), 0);
  EXPECT_EQ(make_tile_walk(make_mask_rule(9, 0, false, true, -1, -1), 0, 9, 4).tiles(), 0);
}

}  // namespace
}  // namespace tilewright::schedule
