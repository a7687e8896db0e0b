// src/backend/cuda/compiler.h: compiles one kernel with NVRTC and judges what came out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cubin.h"
#include "backend/cuda/kernel_source.h"
#include "backend/cuda/nvrtc.h"

namespace tilewright::cuda {

/// The only architecture there are kernels for: Hopper with its own instructions. Machine code for
/// it runs on compute capability 9.0 alone.
inline constexpr std::string_view kArchitecture = "sm_90a";
inline constexpr int kComputeCapabilityMajor = 9;
inline constexpr int kComputeCapabilityMinor = 0;

struct CompiledKernel {
  std::string cubin;
  std::string log;
  CubinFacts facts;
  double seconds = 0;
};

/// Compiles to machine code; on failure the message ends with the compiler's log.
Result<CompiledKernel> compile(const Nvrtc& nvrtc, const KernelSource& source,
                               std::span<const EmbeddedFile> files);

/// What must not be in a shipped kernel: the assembler's warnings of serialised matrix
/// instructions (C7508 to C7515), spilled registers, and local memory. Empty when all is well.
std::vector<std::string> performance_faults(const CompiledKernel& kernel);

}  // namespace tilewright::cuda
