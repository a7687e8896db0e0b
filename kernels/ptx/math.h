// kernels/ptx/math.h: fast single-precision functions and conversions to 16 bits.
#pragma once

namespace tilewright::kernels {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;
inline constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000);

/// 2^x; 2 ulp, denormal results are 0, -inf gives 0.
inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// -infinity of 0 (and of denormals).
inline float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// x, its magnitude cut to `most` > 0; a NaN stays one.
inline float clamp_magnitude(float x, float most) {
  float y;
  asm("min.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(most));
  return y;
}

/// Two floats rounded to 16 bits, the first in the low half.
template <typename Element>
inline unsigned pack_pair(float low, float high) {
  unsigned packed;
  asm("cvt.rn.%3x2.f32 %0, %2, %1;" : "=r"(packed) : "f"(low), "f"(high), "C"(Element::kName));
  return packed;
}

}  // namespace tilewright::kernels
