// src/backend/cuda/packed_kernels.h: which kernels are shipped precompiled.
#pragma once

#include <vector>

#include "backend/cuda/kernel_source.h"
#include "schedule/hopper_forward.h"

namespace tilewright::cuda {

/// The specialisations that the planner chooses for the workloads worth shipping; each once.
std::vector<schedule::HopperForwardSpecialisation> packed_specialisations();

/// Those, and the kernels that have no specialisation.
std::vector<KernelSource> packed_kernels();

}  // namespace tilewright::cuda
