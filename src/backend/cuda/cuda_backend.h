// src/backend/cuda/cuda_backend.h: runs plans on an NVIDIA GPU, in the caller's context and stream.
#pragma once

#include <string>
#include <vector>

#include "tilewright/machine.h"
#include "tilewright/run.h"

namespace tilewright::cuda {

/// Launches the plan on options.stream and returns. Addresses, alignment and the workspace's size
/// have been checked.
Status run_forward(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options);

/// Compiles and loads the plan's kernels in the current context, so that run_forward launches only.
Status prepare(const Plan& plan);

/// Zeroes the workspace's control block, on the stream.
Status init_workspace(const Plan& plan, const Workspace& workspace, void* stream);

/// The GPU of the current context (or the first one), its driver's figures over the profile that
/// fits it best.
Result<Machine> this_gpu(const std::vector<Machine>& profiles);

}  // namespace tilewright::cuda
