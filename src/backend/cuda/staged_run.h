// src/backend/cuda/staged_run.h: runs a GPU plan on arrays in host memory, for tools and tests.
#pragma once

#include <vector>

#include "tilewright/run.h"

namespace tilewright::cuda {

/// What a staged run measured, on the device's own clock.
struct StagedReport {
  std::vector<double> seconds;  ///< of each run, copies not included
  std::int64_t device_bytes = 0;
};

/// The problem as its device copies make it: lengths on the device, addresses aligned for TMA.
AttentionSpec staged_spec(AttentionSpec spec);

/// Copies the operands (and what O and LSE hold) to the first GPU, runs, and copies O and LSE back.
/// With repeats, runs as often. The plan's problem must be one of staged_spec.
Result<StagedReport> run_staged(const Plan& plan, const AttentionTensors& host, int repeats = 1);

}  // namespace tilewright::cuda
