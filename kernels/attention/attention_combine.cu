// kernels/attention/attention_combine.cu: merges the partial results of a forward split over keys.
//
//   O = sum over splits of O_s * exp(lse_s - lse), always in the same order
//   lse = log(sum of exp(lse_s) and, once, exp(sink))
// and O = 0 in a row that saw no key anywhere.
//
// A single query waits for this kernel's latency alone, so what a row needs of memory is asked for
// together: a warp takes a row and up to four splits, or several warps share a row, whose sums then
// meet in shared memory. Lanes take splits for the weights, then columns. The kernel may be
// launched ahead of the forward kernel's end, and waits for it.
#include "kernels/attention/attention_combine_params.h"
#include "kernels/ptx/element.h"
#include "kernels/ptx/math.h"
#include "kernels/ptx/thread.h"
#include "kernels/tile/sequence_of.h"

namespace tilewright::kernels {

namespace {

constexpr int kLaneColumns = kMaxCombinedDim / 32;

void store_element(const AttentionCombineParams& p, long long at, float x) {
  switch (p.element) {
    case CombinedElement::bf16:
      static_cast<unsigned short*>(p.o.data)[at] =
          static_cast<unsigned short>(pack_pair<Bf16>(x, x));
      break;
    case CombinedElement::f16:
      static_cast<unsigned short*>(p.o.data)[at] =
          static_cast<unsigned short>(pack_pair<F16>(x, x));
      break;
    case CombinedElement::f32:
      static_cast<float*>(p.o.data)[at] = x;
      break;
  }
}

/// A row of the problem: its batch as operands see it, and where it lies in them.
struct Row {
  bool exists;
  int batch;
  long long operand;
  int head;
  long long row;
};

Row row_of(const AttentionCombineParams& p, long long item) {
  const long long rows = p.q_lengths.bound;
  if (item >= rows * p.heads * p.batch) return {};
  const int batch = static_cast<int>(item / (rows * p.heads));
  const schedule::Sequence q = sequence_of(p.q_lengths, batch);
  return {item % rows < q.tokens, batch, operand_batch(p.q_lengths, batch),
          static_cast<int>(item / rows % p.heads), q.first_row + item % rows};
}

/// How much of the row each split's partial result is; the same in every lane.
struct Weights {
  const float* lse;  ///< of the row's first split
  long long lse_stride;
  int splits;
  float reference = 0.0f;  ///< the largest LSE, or the sink, in base 2
  float sum = 0.0f;        ///< of 2^(lse - reference), the sink's too

  Weights(const AttentionCombineParams& p, const Row& row)
      : lse(p.partial_lse + row.operand * p.partial_lse_batch_stride +
            row.head * p.partial_lse_head_stride + row.row),
        lse_stride(p.partial_lse_split_stride),
        splits(p.splits) {
    const HeadScalars& sinks = p.sinks;
    const float sink =
        sinks.data == nullptr
            ? -kInfinity
            : sinks.data[row.batch * sinks.batch_stride + row.head * sinks.head_stride];
    float most = sink;
    for (int split = lane_index(); split < splits; split += 32) {
      most = fmaxf(most, lse[split * lse_stride]);
    }
    most = warp_max(most);
    if (most != -kInfinity) reference = most * kLog2E;
    for (int split = lane_index(); split < splits; split += 32) sum += exponential(split);
    sum = warp_sum(sum) + exp2_fast(sink * kLog2E - reference);
  }

  float exponential(int split) const {
    return exp2_fast(lse[split * lse_stride] * kLog2E - reference);
  }
};

/// Adds splits first, first + step, .. in this lane's columns: lane, lane + 32, ..
void add_splits(const AttentionCombineParams& p, const Row& row, const Weights& weights, int first,
                int step, float (&columns)[kLaneColumns]) {
  const float* partial = static_cast<const float*>(p.partial_o.data) +
                         row.operand * p.partial_o.batch_stride + row.row * p.partial_o.row_stride +
                         row.head * p.partial_o.head_stride + lane_index();
  const float normalise = weights.sum == 0.0f ? 0.0f : reciprocal(weights.sum);
#pragma unroll 4
  for (int split = first; split < p.splits; split += step) {
    const float weight = weights.exponential(split) * normalise;
    const float* from = partial + split * p.partial_o_split_stride;
#pragma unroll
    for (int i = 0; i < kLaneColumns; ++i) {
      if (lane_index() + 32 * i < p.v_dim) {
        columns[i] = __fmaf_rn(from[32 * i], weight, columns[i]);
      }
    }
  }
}

void store(const AttentionCombineParams& p, const Row& row, int column, float x) {
  store_element(p,
                row.operand * p.o.batch_stride + row.row * p.o.row_stride +
                    row.head * p.o.head_stride + column * p.o.column_stride,
                x);
}

void store_lse(const AttentionCombineParams& p, const Row& row, const Weights& weights) {
  if (p.lse == nullptr) return;
  p.lse[row.operand * p.lse_batch_stride + row.head * p.lse_head_stride + row.row] =
      (weights.reference + log2_fast(weights.sum)) * kLn2;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kCombineThreads)
    attention_combine(const __grid_constant__ AttentionCombineParams params) {
  extern __shared__ float parts[];  // [kCombineWarps][kMaxCombinedDim]
  wait_for_earlier_grid();
  const int row_warps = combine_row_warps(params.splits);
  const int block_rows = kCombineWarps / row_warps;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int part = warp % row_warps;
  const int lane = lane_index();
  const long long rows = params.q_lengths.bound;
  const long long items = rows * params.heads * params.batch;
  for (long long first = static_cast<long long>(blockIdx.x) * block_rows; first < items;
       first += static_cast<long long>(gridDim.x) * block_rows) {
    const Row row = row_of(params, first + warp / row_warps);
    if (row.exists) {
      const Weights weights(params, row);
      float columns[kLaneColumns] = {};
      add_splits(params, row, weights, part, row_warps, columns);
#pragma unroll
      for (int i = 0; i < kLaneColumns; ++i)
        parts[warp * kMaxCombinedDim + lane + 32 * i] = columns[i];
      if (part == 0 && lane == 0) store_lse(params, row, weights);
    }
    __syncthreads();
    if (row.exists) {
      for (int column = 32 * part + lane; column < params.v_dim; column += 32 * row_warps) {
        float x = 0.0f;
        for (int i = 0; i < row_warps; ++i)
          x += parts[(warp - part + i) * kMaxCombinedDim + column];
        store(params, row, column, x);
      }
    }
    __syncthreads();
  }
}

}  // namespace tilewright::kernels
