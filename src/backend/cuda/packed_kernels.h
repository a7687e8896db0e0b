// src/backend/cuda/packed_kernels.h: which kernels are shipped precompiled.
#pragma once

#include <vector>

#include "backend/cuda/kernel_source.h"
#include "schedule/hopper_forward.h"

namespace tilewright::cuda {

/// Which workloads a pack is for.
enum class PackScope {
  shipped,        ///< what most models run
  every_feature,  ///< every combination of features, for machines that test
};

/// The specialisations that the planner chooses for the workloads worth shipping; each once.
std::vector<schedule::HopperForwardSpecialisation> packed_specialisations(
    PackScope scope = PackScope::shipped);

/// Those, and the kernels that have no specialisation.
std::vector<KernelSource> packed_kernels(PackScope scope = PackScope::shipped);

}  // namespace tilewright::cuda
