// src/backend/cuda/staged_run.h: runs a GPU plan on arrays in host memory, for tools and tests.
#pragma once

#include "tilewright/run.h"

namespace tilewright::cuda {

/// What a staged run measured, on the device's own clock.
struct StagedReport {
  double seconds = 0;  ///< median of the runs, copies not included
  std::int64_t device_bytes = 0;
};

/// Copies the operands (and what O and LSE hold) to the first GPU, runs, and copies O and LSE back.
/// With repeats, runs as often, timing each.
Result<StagedReport> run_staged(const Plan& plan, const AttentionTensors& host, int repeats = 1);

}  // namespace tilewright::cuda
