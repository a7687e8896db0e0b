// cli/timed_run.h: runs a plan on arrays in host memory, on this CPU or through copies on a GPU,
// and times it.
#pragma once

#include <functional>
#include <vector>

#include "tilewright/machine.h"
#include "tilewright/run.h"

namespace tilewright::cli {

/// The spec as it is on the machine: a GPU gets copies, whose lengths and alignment are the
/// device's.
AttentionSpec spec_for(const Machine& machine, const AttentionSpec& spec);

/// Seconds of each of `repeats` runs. On a GPU they are of its own clock, copies not included.
Result<std::vector<double>> timed_runs(const Plan& plan, const AttentionTensors& tensors,
                                       std::int64_t repeats,
                                       const std::function<void(double fraction)>& progress = {});

}  // namespace tilewright::cli
