// kernels/attention/hopper_forward_params.h: the run-time arguments of the Hopper forward kernel,
// for host and device.
//
// How the host uses the kernel (kernels/attention/hopper_forward.cu):
// - Compile for sm_90a with NVRTC, options -std=c++20 -default-device, include paths "." (the root)
//   and "src". The source includes "hopper_forward_specialisation.inc", which the host generates:
//   the twelve integers of for_each_field(specialisation), in order, separated by commas.
// - Entry: extern "C" hopper_forward(HopperForwardParams by value). Block: threads(s) x 1 x 1.
//   Grid: 1-D, min(SMs, an upper bound of the tiles), at least 1. Dynamic shared memory:
//   footprint(s).total_bytes(), after raising CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
// - Tensor maps (TMA producer only): 16-bit elements; dims (head dim, rows, heads, batch), where
//   heads and rows are the tensor's own, and box (64, kRowsPerConsumer for Q and kv_rows for K and
//   V, 1, 1). With packs_heads(s), Q's dims are (head dim, pack.heads, rows, heads / pack.heads,
//   batch) and its box is (64, pack.heads, pack.tokens, 1, 1). 128-byte swizzle; no interleave;
//   out-of-bounds fill zero; L2 promotion 128 bytes. Dims are the problem's own (the head dim not
//   rounded up), at least 1. Packed batches: batch = 1 and rows = all tokens. Such a map needs:
//   column stride 1, data 16-byte aligned, every other stride a positive multiple of 8 elements.
//   Otherwise use copy_producer.
// - Splits > 1: f32_output, o and lse are the partial results with a leading split stride, sinks
//   null; then launch attention_combine.
#pragma once

#include "schedule/hopper_forward.h"

namespace tilewright::kernels {

/// A CUtensorMap: opaque to us, 128 bytes, read by the copy engine only.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

/// A tensor (batch, rows, heads, columns). Strides are in elements. Packed batches: batch_stride is
/// 0 and sequences start at their own row.
struct StridedTensor {
  void* data;
  long long batch_stride;
  long long row_stride;
  long long head_stride;
  long long column_stride;
};

/// How the lengths of one side are given: `bound` alone, or read on the device and clamped to it.
enum class LengthKind : int { fixed = 0, per_sequence = 1, cumulative = 2 };

struct SequenceLengths {
  const int* values;  ///< per_sequence: [batch]; cumulative: [batch + 1]
  LengthKind kind;
  int unused;
  long long bound;       ///< tokens of the longest sequence, below 2^28
  long long total_rows;  ///< cumulative: rows of the buffer
};

/// fp32 numbers, one a head: data[batch * batch_stride + head * head_stride]; null if absent.
struct HeadScalars {
  const float* data;
  long long batch_stride;
  long long head_stride;
};

struct HopperForwardParams {
  TensorMap q_map;
  TensorMap k_map;
  TensorMap v_map;

  StridedTensor q;  ///< q, k and v are read here by the copy producer only
  StridedTensor k;
  StridedTensor v;
  StridedTensor o;
  long long o_split_stride;    ///< of the partial results
  float* lse;                  ///< may be null; natural logarithm
  long long lse_batch_stride;  ///< packed: 0, rows counted from the start of the buffer
  long long lse_head_stride;   ///< rows are contiguous
  long long lse_split_stride;

  SequenceLengths q_lengths;
  SequenceLengths kv_lengths;
  HeadScalars alibi_slopes;  ///< with `alibi` only
  HeadScalars sinks;         ///< natural-logarithm logits; null if none

  int batch;
  int heads;
  int heads_per_kv_head;
  schedule::HeadPack pack;  ///< of a divisor of heads_per_kv_head; of 1 without packs_heads(s)
  int qk_dim;  ///< the problem's own head dims: columns beyond them are not read or written
  int v_dim;
  float scale;    ///< any finite value
  float softcap;  ///< with `softcap` only; > 0
  int splits;     ///< of the keys; 1 if none

  // The band, as in schedule/mask_rule.h; read if `banded`, or with alibi for its diagonal.
  long long window_left;   ///< -1: unbounded
  long long window_right;  ///< -1: unbounded; causal is 0
  int bottom_right;        ///< the diagonal meets the last query and key, else the first

  int head_groups;  ///< of KV heads (of all batches, where lengths are fixed), walked one after
                    ///< the other so that a group's K and V stay in L2; 1 to all of them

  /// Two ints: next tile, blocks finished. Zero before the launch, and left zero by it.
  int* control;
};

}  // namespace tilewright::kernels
