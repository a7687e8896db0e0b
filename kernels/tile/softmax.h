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

  // One row (0 or 1) at a time, so that the maxima of one can run under the exponentials of the
  // other.

  /// Takes a tile's maximum in. rescale: what O must be multiplied by before the tile is added to
  /// it.
  template <int Row, int Registers>
  void raise(const float (&scores)[Registers], float c, float (&rescale)[2]) {
    float even = scores[2 * Row], odd = scores[2 * Row + 1];
#pragma unroll
    for (int i = 4; i < Registers; i += 4) {
      even = fmaxf(even, scores[i + 2 * Row]);
      odd = fmaxf(odd, scores[i + 2 * Row + 1]);
    }
    const float before = row_max[Row];
    row_max[Row] = fmaxf(before, quad_max(fmaxf(even, odd)));
    // The difference first: a maximum that stays rescales by exactly 1. As before * c - row_max *
    // c, one fused multiply-add, it would leave a product's rounding, which thousands of tiles add
    // up.
    const float greatest = row_max[Row] == -kInfinity ? 0.0f : row_max[Row];
    rescale[Row] = exp2_fast((before - greatest) * c);
  }

  /// Turns the scores into unnormalised probabilities, and adds them up.
  template <int Row, int Registers>
  void exponentiate(float (&scores)[Registers], float c, const float (&rescale)[2]) {
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int i = 0; i < Registers; i += 4) {
      float& x = scores[i + 2 * Row];
      float& y = scores[i + 2 * Row + 1];
      x = exp2_fast(__fmaf_rn(x, c, -reference(Row, c)));
      y = exp2_fast(__fmaf_rn(y, c, -reference(Row, c)));
      even = i == 0 ? x : even + x;
      odd = i == 0 ? y : odd + y;
    }
    row_sum[Row] = __fmaf_rn(row_sum[Row], rescale[Row], even + odd);
  }

  template <int Row, int Registers>
  void step(float (&scores)[Registers], float c, float (&rescale)[2]) {
    raise<Row>(scores, c, rescale);
    exponentiate<Row>(scores, c, rescale);
  }

  /// Completes the sums. sink: base-2 logits that join the denominators (-infinity: none). lse:
  /// natural. normalise: what O must be multiplied by; 0 for a row that saw no key.
  void finish(float c, const float (&sink)[2], float (&normalise)[2], float (&lse)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float seen = row_max[r] == -kInfinity ? -kInfinity : row_max[r] * c;
      const float greatest = fmaxf(seen, sink[r]);
      const float reference = greatest == -kInfinity ? 0.0f : greatest;
      const float scale = exp2_fast(seen - reference);
      const float sum = quad_sum(row_sum[r]) * scale + exp2_fast(sink[r] - reference);
      normalise[r] = sum == 0.0f ? 0.0f : scale * reciprocal(sum);
      lse[r] = (reference + log2_fast(sum)) * kLn2;
    }
  }

 private:
  /// A row that has seen no key yet has no reference; any finite one gives 2^-inf = 0.
  float reference(int r, float c) const {
    return row_max[r] == -kInfinity ? 0.0f : row_max[r] * c;
  }
};

}  // namespace tilewright::kernels
