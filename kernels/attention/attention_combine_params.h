// kernels/attention/attention_combine_params.h: the run-time arguments of the combine kernel, for
// host and device.
//
// How the host uses the kernel (kernels/attention/attention_combine.cu): compile as the forward
// kernel is, with no specialisation. Entry: extern "C" attention_combine(AttentionCombineParams by
// value). Block: kCombineThreads, with kCombineSharedBytes of dynamic shared memory. Grid: 1-D, any
// size; combine_blocks() is enough to give each row its warps.
#pragma once

#include "kernels/attention/hopper_forward_params.h"

namespace tilewright::kernels {

enum class CombinedElement : int { bf16 = 0, f16 = 1, f32 = 2 };

struct AttentionCombineParams {
  StridedTensor partial_o;  ///< fp32, column_stride 1; row and batch strides as O's are meant
  long long partial_o_split_stride;
  const float* partial_lse;  ///< natural logarithms; -infinity where a split saw no key
  long long partial_lse_batch_stride;
  long long partial_lse_head_stride;
  long long partial_lse_split_stride;

  StridedTensor o;
  float* lse;  ///< may be null
  long long lse_batch_stride;
  long long lse_head_stride;

  SequenceLengths q_lengths;
  HeadScalars sinks;  ///< null if none

  int batch;
  int heads;
  int v_dim;
  int splits;
  CombinedElement element;  ///< of o
};

inline constexpr int kCombineWarps = 8;
inline constexpr int kCombineThreads = 32 * kCombineWarps;
inline constexpr int kMaxCombinedDim = 256;
inline constexpr int kCombineSharedBytes = kCombineWarps * kMaxCombinedDim * 4;

/// Warps that share a row: four splits each, as long as there are warps.
constexpr int combine_row_warps(int splits) {
  int warps = 1;
  while (warps < kCombineWarps && 4 * warps < splits) warps *= 2;
  return warps;
}

/// Blocks that give every row of the problem its warps.
constexpr long long combine_blocks(long long batch, long long heads, long long q_bound,
                                   int splits) {
  const int block_rows = kCombineWarps / combine_row_warps(splits);
  return (batch * heads * q_bound + block_rows - 1) / block_rows;
}

}  // namespace tilewright::kernels
