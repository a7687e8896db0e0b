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
  std::string faults;  ///< of the kernels, a line each
};

/// What a compiled kernel must agree on with the planner's arithmetic, beside performance_faults:
/// shared memory and registers. Empty when it does.
std::vector<std::string> plan_faults(const KernelSource& source, const CubinFacts& facts);

/// Compiles on `jobs` threads and writes the pack, unless a kernel does not compile. Faults are
/// reported, and what they mean is the caller's to say.
Result<PackReport> build_pack(const std::filesystem::path& file, const Nvrtc& nvrtc,
                              const std::vector<KernelSource>& kernels, int jobs);

}  // namespace tilewright::cuda
