// kernels/tile/score.h: what happens to a score between Q K^T and the mask: softcap, then ALiBi.
#pragma once

#include "kernels/ptx/math.h"
#include "kernels/tile/tanh.h"
#include "schedule/hopper_forward.h"

namespace tilewright::kernels {

/// Leaves scores of which c (below) makes base-2 logarithms. |scale| stands for scale: a negative
/// one is applied by negating Q. A zero scale becomes the least normal number, so that c *
/// -infinity is no NaN, and c * score is still 0 to fp32's last bit.
template <schedule::HopperForwardSpecialisation kSpec>
struct ScoreTransform {
  float c;          ///< base-2 logarithm = c * score after the transform
  float cap_scale;  ///< |scale| / softcap, scaled for tanh_ratio
  float slope = 0;  ///< ALiBi's, in base 2
  float scaled;     ///< c before ALiBi

  ScoreTransform(float scale, float softcap) {
    const float magnitude = fmaxf(fabsf(scale), 1.17549435e-38f);
    scaled = kSpec.softcap ? softcap * kLog2E : fmaxf(magnitude * kLog2E, 1.17549435e-38f);
    cap_scale = kSpec.softcap ? magnitude / softcap * kTanhScale : 0.0f;
    c = kSpec.alibi ? 1.0f : scaled;
  }

  /// distance: i + kv_len - q_len - j of the thread's first score; its second row is 8 further
  /// down.
  template <int Registers>
  void apply(float (&scores)[Registers], int distance) const {
#pragma unroll
    for (int i = 0; i < Registers; ++i) {
      if constexpr (kSpec.softcap) {
        const TanhRatio tanh = tanh_ratio(clamp_magnitude(scores[i] * cap_scale, kTanhLimit));
        scores[i] = tanh.numerator * reciprocal(tanh.denominator);
      }
      if constexpr (kSpec.alibi) {
        const int key = 8 * (i / 4) + i % 2 - 8 * ((i / 2) % 2);
        const float away = fabsf(static_cast<float>(distance - key));
        scores[i] = __fmaf_rn(-slope, away, scores[i] * scaled);
      }
    }
  }
};

}  // namespace tilewright::kernels
