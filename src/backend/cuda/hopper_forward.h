// src/backend/cuda/hopper_forward.h: compiles, fills in and launches the Hopper forward kernel.
#pragma once

#include "backend/cuda/kernel_cache.h"
#include "kernels/attention/hopper_forward_params.h"
#include "schedule/hopper_forward.h"
#include "tilewright/run.h"

namespace tilewright::cuda {

/// An open driver, and the kernels loaded through it.
struct Runtime {
  const DriverApi& driver;
  KernelCache& kernels;
};

/// The kernel of a specialisation.
KernelSource hopper_forward_source(const schedule::HopperForwardSpecialisation& specialisation);

/// The kernel's arguments for one call. `control` is the workspace's start, on the device.
Result<kernels::HopperForwardParams> hopper_forward_params(const DriverApi& driver,
                                                           const Plan& plan,
                                                           const AttentionTensors& tensors,
                                                           void* workspace);

/// Compiles and loads what the plan needs in the current context.
Status prepare_hopper_forward(const Runtime& runtime, const Plan& plan);

/// Launches the plan on the stream; returns before it is done.
Status run_hopper_forward(const Runtime& runtime, const Plan& plan, const AttentionTensors& tensors,
                          const RunOptions& options);

}  // namespace tilewright::cuda
