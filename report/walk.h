// report/walk.h: the walk of a plan's tiles, step by step, at a length that can be drawn.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/traffic.h"
#include "schedule/mask_rule.h"
#include "schedule/tile_walk.h"
#include "tilewright/plan.h"

namespace tilewright::report {

/// What happens in one step.
enum class Action : std::uint8_t { load_q = 0, visit = 1, store_o = 2 };

struct Step {
  Action action = Action::load_q;
  schedule::Index q_tile = 0;
  schedule::Index kv_tile = 0;     ///< of a visit
  std::int64_t bytes_so_far = 0;   ///< to and from fast memory
  std::optional<double> tile_max;  ///< of a visit: the sample row's largest score in this tile
  std::optional<double> max;       ///< of the sample row, over the tiles so far; unset: none seen
  double rescale = 1;              ///< factor on the row's sum and output before this tile is added
  double sum = 0;                  ///< of exp(score - max) over the row, so far
};

/// The q_outer walk over one head, or over heads that share query tiles. The sample row is the last
/// row of each query tile.
struct Walk {
  schedule::MaskRule rule;
  Tile tile;                   ///< q_rows: tokens
  schedule::Index heads = 1;   ///< query heads in each query tile
  HandOff hand_off;            ///< what crosses to the vector unit and back through the cache
  bool same_lengths = true;    ///< drawn at the plan's own lengths, not at shorter or longer ones
  bool example_scores = true;  ///< made up, not the run's
  std::int64_t kv_splits = 1;  ///< the plan's; drawn as one part
  std::vector<schedule::TileWalk> q_tiles;
  std::vector<Step> steps;
  std::int64_t standard_bytes = 0;  ///< the unfused schedule's, at the drawn lengths

  schedule::Index kv_tiles() const { return schedule::ceil_div(rule.kv_len, tile.kv_rows); }
};

/// Nothing when the plan's schedule is not q_outer or there is nothing to walk.
std::optional<Walk> make_walk(
    const Plan& plan, const std::function<double(std::int64_t query, std::int64_t key)>& score);

}  // namespace tilewright::report
