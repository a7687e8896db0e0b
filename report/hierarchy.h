// report/hierarchy.h: a machine's memories as levels, from off-chip memory up to the arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/machine.h"
#include "tilewright/plan.h"

namespace tilewright::report {

/// One memory in the drawing.
struct Box {
  std::string name;
  std::string unit;  ///< what has one of these; empty: the whole device
  Figure capacity_bytes;
  Figure rate;                       ///< bytes a second towards the arithmetic, of one of these
  std::string towards;               ///< where that rate leads, when a link says so
  std::vector<FootprintItem> holds;  ///< what the plan places here
};

/// Levels, nearest to the arithmetic first; memories side by side share a level. Links say what
/// lies next to what; a store that no link mentions lies just above the next store of the list.
std::vector<std::vector<Box>> hierarchy(const Machine& machine, const Plan& plan);

}  // namespace tilewright::report
