// src/plan/explain.h: the planner's sentences: why a plan was chosen, why a tile was refused.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/kernel_model.h"

namespace tilewright {

/// Whether every store holds what these bytes place there.
bool fits(const Machine& machine, const std::vector<PlacedBytes>& bytes);

/// "128x64"
std::string text(const Tile& tile);

/// does_not_fit: need, have and what takes how much, of every store that the choice over-fills, and
/// the best tile that fits, if any does.
Status refuse_overflow(const KernelModel& model, const Choice& choice,
                       const std::optional<Choice>& best);

/// What the planner weighed beside the plan it chose.
struct Alternatives {
  Index tiles_costed = 0;
  bool tile_given = false;
  std::optional<Choice> best;  ///< where the tile was given: what would have been chosen
  double best_seconds = 0;
  Traffic unfused_traffic;
  Traffic unfused_off_chip;
  double unfused_seconds = 0;
};

std::string explain(const KernelModel& model, const Plan& plan, const Alternatives& alternatives);

}  // namespace tilewright
