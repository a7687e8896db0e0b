// src/backend/cuda/pack_builder.h: compiles and judges the kernels of a pack, and writes it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "backend/cuda/compiler.h"
#include "backend/cuda/kernel_pack.h"

namespace tilewright::cuda {

struct PackReport {
  int kernels = 0;
  std::uint64_t file_bytes = 0;
  double seconds = 0;
  double slowest_kernel_seconds = 0;
};

/// What a compiled kernel must agree on with the planner's arithmetic, beside performance_faults:
/// shared memory and registers. Empty when it does.
std::vector<std::string> plan_faults(const KernelSource& source, const CubinFacts& facts);

/// Compiles on `jobs` threads and writes the pack. Any fault fails it; the message lists
/// every kernel that has one.
Result<PackReport> build_pack(const std::filesystem::path& file, const Nvrtc& nvrtc,
                              const std::vector<KernelSource>& kernels, int jobs);

}  // namespace tilewright::cuda
