// kernels/attention/attention_combine.cu: merges the partial results of a forward split over keys.
//
// A warp takes a row: O = sum over splits, in index order, of O_s * exp(lse_s - lse), where lse is
// the logarithm of the sum of exp(lse_s) and, once, exp(sink). A row that saw no key anywhere
// becomes 0.
#include "kernels/attention/attention_combine_params.h"
#include "kernels/ptx/element.h"
#include "kernels/ptx/math.h"
#include "kernels/ptx/thread.h"
#include "kernels/tile/sequence_of.h"

namespace tilewright::kernels {

namespace {

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

void combine_row(const AttentionCombineParams& p, int batch, int head, long long row) {
  const int lane = lane_index();
  const long long operand = operand_batch(p.q_lengths, batch);
  const float* lse =
      p.partial_lse + operand * p.partial_lse_batch_stride + head * p.partial_lse_head_stride + row;
  const float sink = p.sinks.data == nullptr
                         ? -kInfinity
                         : p.sinks.data[batch * p.sinks.batch_stride + head * p.sinks.head_stride];
  float most = sink;
  for (int split = 0; split < p.splits; ++split) {
    most = fmaxf(most, lse[split * p.partial_lse_split_stride]);
  }
  const float reference = most == -kInfinity ? 0.0f : most * kLog2E;
  float sum = exp2_fast(sink * kLog2E - reference);
  for (int split = 0; split < p.splits; ++split) {
    sum += exp2_fast(lse[split * p.partial_lse_split_stride] * kLog2E - reference);
  }
  const float normalise = sum == 0.0f ? 0.0f : reciprocal(sum);

  const float* partial = static_cast<const float*>(p.partial_o.data) +
                         operand * p.partial_o.batch_stride + row * p.partial_o.row_stride +
                         head * p.partial_o.head_stride;
  const long long o = operand * p.o.batch_stride + row * p.o.row_stride + head * p.o.head_stride;
  for (int column = lane; column < p.v_dim; column += 32) {
    float x = 0.0f;
    for (int split = 0; split < p.splits; ++split) {
      const float weight =
          exp2_fast(lse[split * p.partial_lse_split_stride] * kLog2E - reference) * normalise;
      x = __fmaf_rn(partial[split * p.partial_o_split_stride + column], weight, x);
    }
    store_element(p, o + column * p.o.column_stride, x);
  }
  if (p.lse != nullptr && lane == 0) {
    p.lse[operand * p.lse_batch_stride + head * p.lse_head_stride + row] =
        (reference + log2_fast(sum)) * kLn2;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kCombineThreads)
    attention_combine(const __grid_constant__ AttentionCombineParams params) {
  const long long rows = params.q_lengths.bound;
  const long long items = rows * params.heads * params.batch;
  const long long warps = static_cast<long long>(gridDim.x) * (kCombineThreads / 32);
  for (long long item =
           static_cast<long long>(blockIdx.x) * (kCombineThreads / 32) + threadIdx.x / 32;
       item < items; item += warps) {
    const int batch = static_cast<int>(item / (rows * params.heads));
    const int head = static_cast<int>(item / rows % params.heads);
    const long long row = item % rows;
    const schedule::Sequence q = sequence_of(params.q_lengths, batch);
    if (row < q.tokens) combine_row(params, batch, head, q.first_row + row);
  }
}

}  // namespace tilewright::kernels
