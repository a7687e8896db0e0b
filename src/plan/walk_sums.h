// src/plan/walk_sums.h: how many tiles and keys all query tiles of a sequence visit, in closed
// form.
//
// The sums of schedule/tile_walk.h over every query tile, in time that grows with the logarithm of
// the lengths, so that the planner can cost many tiles in well under a millisecond.
#pragma once

#include "schedule/mask_rule.h"

namespace tilewright {

using schedule::Index;

/// Sums over query tiles. Keys count whole key tiles, clipped to the sequence.
struct WalkSums {
  Index tiles = 0;          ///< pairs of query tile and key tile that are visited
  Index keys = 0;           ///< keys loaded
  Index scores = 0;         ///< q rows x keys of every pair, query tiles clipped to the sequence
  Index pair_rows = 0;      ///< q rows of every pair, clipped
  Index q_tiles = 0;        ///< query tiles that visit a key at all
  Index q_rows = 0;         ///< their rows, clipped
  Index distinct_keys = 0;  ///< keys that some query tile visits
  Index most_tiles = 0;     ///< key tiles of the query tile that visits most, or nearly
};

WalkSums walk_sums(const schedule::MaskRule& rule, Index q_rows, Index kv_rows);

/// Sum over i in [0, count) of floor((step * i + offset) / divisor), nothing negative, divisor > 0.
Index floor_sum(Index count, Index divisor, Index step, Index offset);

}  // namespace tilewright
