// src/backend/cpu/kernels.h: the kernels of every instruction set, and which of them this CPU runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/forward_call.h"
#include "tilewright/status.h"

namespace tilewright::cpu {

/// One instruction set's kernels for one dtype, compiled in a namespace of its own.
struct Kernels {
  /// Computes one task in this worker's scratch.
  void (*forward)(const ForwardCall& call, const ForwardTask& task, std::byte* scratch);
  /// Merges the partial results of one task's rows (kv_splits > 1).
  void (*merge)(const ForwardCall& call, const ForwardTask& task);
  /// The standard schedule's three passes over one task.
  void (*scores)(const ForwardCall& call, const ForwardTask& task, std::byte* scratch);
  void (*softmax)(const ForwardCall& call, const ForwardTask& task);
  void (*output)(const ForwardCall& call, const ForwardTask& task, std::byte* scratch);
  /// to[i] = 2^from[i] for from[i] <= 1; and tanh. For tests: count is a multiple of 16.
  void (*exp2)(const float* from, float* to, Index count);
  void (*tanh)(const float* from, float* to, Index count);
  Index operand_bytes = 4;  ///< of an element as multiplied: 4 in fp32, 2 in bf16 products
};

/// The kernels of an instruction set for operands of a dtype; empty isa: the best for that dtype.
/// unavailable names the sets there are.
Result<const Kernels*> find_kernels(std::string_view isa, DType dtype);

// Each defined in the file of its instruction set.
namespace portable {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
namespace avx512_bf16 {
extern const Kernels kKernels;  // for bf16 operands alone
}
namespace amx_bf16 {
extern const Kernels kKernels;  // likewise, and the process must have asked for tiles
}
namespace neon {
extern const Kernels kKernels;
}

}  // namespace tilewright::cpu
