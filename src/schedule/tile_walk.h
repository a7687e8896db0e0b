// src/schedule/tile_walk.h: the key tiles that one query tile visits, and which of them need a
// mask.
//
// Freestanding and constexpr, like mask_rule.h. Key tiles lie at multiples of kv_rows.
#pragma once

#include "schedule/mask_rule.h"

namespace tilewright::schedule {

/// Key tiles [first, end) of one query tile; those in [unmasked_first, unmasked_end) are seen in
/// full by every row, so only the others (at most a few at either edge) apply the mask.
struct TileWalk {
  Index first = 0;
  Index end = 0;
  Index unmasked_first = 0;
  Index unmasked_end = 0;

  constexpr Index tiles() const { return end > first ? end - first : 0; }
  constexpr bool masked(Index tile) const { return tile < unmasked_first || tile >= unmasked_end; }
};

/// The walk of queries [q_begin, q_end) over tiles of kv_rows keys.
constexpr TileWalk make_tile_walk(const MaskRule& rule, Index q_begin, Index q_end, Index kv_rows) {
  TileWalk walk;
  const KeyRange visited = rule.visited(q_begin, q_end);
  if (visited.empty() || q_end <= q_begin) return walk;
  walk.first = visited.begin / kv_rows;
  walk.end = ceil_div(visited.end, kv_rows);
  const KeyRange unmasked = rule.unmasked(q_begin, q_end);
  // Whole tiles only; the sequence's ragged last tile counts as masked.
  walk.unmasked_first = clamp(ceil_div(unmasked.begin, kv_rows), walk.first, walk.end);
  walk.unmasked_end = clamp(unmasked.end / kv_rows, walk.unmasked_first, walk.end);
  return walk;
}

/// The part of a walk that split `index` of `splits` computes, in whole tiles, as even as they
/// come.
constexpr TileWalk split_walk(const TileWalk& walk, Index index, Index splits) {
  const Index tiles = walk.tiles();
  TileWalk part;
  part.first = walk.first + tiles * index / splits;
  part.end = walk.first + tiles * (index + 1) / splits;
  part.unmasked_first = clamp(walk.unmasked_first, part.first, part.end);
  part.unmasked_end = clamp(walk.unmasked_end, part.unmasked_first, part.end);
  return part;
}

}  // namespace tilewright::schedule
