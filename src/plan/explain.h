// src/plan/explain.h: the planner's sentences: why a plan was chosen, why a tile was refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/kernel_model.h"

namespace tilewright {

/// A store that a choice over-fills.
struct Overflow {
  std::size_t store = 0;
  Index need_bytes = 0;
  Index have_bytes = 0;
};

/// The first store that these bytes over-fill, nearest to the arithmetic first.
std::optional<Overflow> find_overflow(const Machine& machine,
                                      const std::vector<PlacedBytes>& bytes);

/// "128x64"
std::string text(const Tile& tile);

/// does_not_fit: need, have, what takes how much, and the best tile that fits, if any does.
Status refuse_overflow(const KernelModel& model, const Choice& choice, const Overflow& overflow,
                       const std::optional<Choice>& best);

/// What the planner weighed beside the plan it chose.
struct Alternatives {
  Index tiles_costed = 0;
  bool tile_given = false;
  std::optional<Choice> best;  ///< where the tile was given: what would have been chosen
  double best_seconds = 0;
  Traffic unfused_traffic;
  double unfused_seconds = 0;
};

std::string explain(const KernelModel& model, const Plan& plan, const Alternatives& alternatives);

}  // namespace tilewright
