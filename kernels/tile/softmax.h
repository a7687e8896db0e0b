// kernels/tile/softmax.h: the online softmax of two rows a thread, in powers of two.
//
// After any number of tiles: row_sum = sum of 2^(c * score - reference), and O is the same sum of
// V rows, where reference = c * row_max. A greater maximum rescales both. c > 0 turns a score into
// a base-2 logarithm.
#pragma once

#include "kernels/ptx/math.h"
#include "kernels/ptx/thread.h"

namespace tilewright::kernels {

/// A row lies in the four lanes of a quad.
inline float quad_max(float x) {
  x = fmaxf(x, shuffle_xor(x, 1));
  return fmaxf(x, shuffle_xor(x, 2));
}

inline float quad_sum(float x) {
  x += shuffle_xor(x, 1);
  return x + shuffle_xor(x, 2);
}

struct OnlineSoftmax {
  float row_max[2] = {-kInfinity, -kInfinity};
  float row_sum[2] = {0.0f, 0.0f};  ///< of this thread's columns only, until finish()

  /// Turns scores into unnormalised probabilities. rescale: what O must be multiplied by before they are
  /// added to it.
  template <int Registers>
  void step(float (&scores)[Registers], float c, float (&rescale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // Two chains a row, so that two rows keep four independent maxima in flight.
      float even = scores[2 * r], odd = scores[2 * r + 1];
#pragma unroll
      for (int i = 4; i < Registers; i += 4) {
        even = fmaxf(even, scores[i + 2 * r]);
        odd = fmaxf(odd, scores[i + 2 * r + 1]);
      }
      const float before = row_max[r];
      row_max[r] = fmaxf(before, quad_max(fmaxf(even, odd)));
      // A row that has seen no key yet has no reference; any finite one gives 2^-inf = 0.
      const float reference = row_max[r] == -kInfinity ? 0.0f : row_max[r] * c;
      rescale[r] = exp2_fast(before * c - reference);
      row_sum[r] *= rescale[r];
#pragma unroll
      for (int i = 0; i < Registers; i += 4) {
        float& x = scores[i + 2 * r];
        float& y = scores[i + 2 * r + 1];
        x = exp2_fast(__fmaf_rn(x, c, -reference));
        y = exp2_fast(__fmaf_rn(y, c, -reference));
      }
      float sum_even = scores[2 * r], sum_odd = scores[2 * r + 1];
#pragma unroll
      for (int i = 4; i < Registers; i += 4) {
        sum_even += scores[i + 2 * r];
        sum_odd += scores[i + 2 * r + 1];
      }
      row_sum[r] += sum_even + sum_odd;
    }
  }

  /// Completes the sums. sink: a base-2 logit that joins the denominator (-infinity: none). lse: natural.
  /// normalise: what O must be multiplied by; 0 for a row that saw no key.
  void finish(float c, float sink, float (&normalise)[2], float (&lse)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float seen = row_max[r] == -kInfinity ? -kInfinity : row_max[r] * c;
      const float greatest = fmaxf(seen, sink);
      const float reference = greatest == -kInfinity ? 0.0f : greatest;
      const float scale = exp2_fast(seen - reference);
      const float sum = quad_sum(row_sum[r]) * scale + exp2_fast(sink - reference);
      normalise[r] = sum == 0.0f ? 0.0f : scale / sum;
      lse[r] = (reference + log2_fast(sum)) * kLn2;
    }
  }
};

}  // namespace tilewright::kernels
