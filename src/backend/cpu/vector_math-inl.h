// src/backend/cpu/vector_math-inl.h: exp2 and tanh on vectors, and 16-bit floats to fp32 and back.
//
// Inline code of one instruction set: included inside its namespace (see avx512.cpp).

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
inline constexpr Index kLanes = hn::MaxLanes(FloatTag());

/// 2^x for x <= 1: at most 1 ULP off (1.5 without fused multiply-add), exactly 1 at 0, 0 below
/// -126; NaN stays NaN. The polynomial is a minimax fit of (2^r - 1) / r on [-1/2, 1/2] (2e-9
/// relative to 2^r).
HWY_INLINE FloatVector exp2_vector(FloatVector x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  // Adding 1.5 * 2^23 rounds x to a whole number n in the low bits; 127 more makes n an exponent.
  const FloatVector magic = hn::Set(d, 12582912.0f + 127.0f);
  const FloatVector shifted = hn::Add(x, magic);
  const FloatVector r = hn::Sub(x, hn::Sub(shifted, magic));
  FloatVector p = hn::Set(d, 1.5353361951e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3398874404e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.6184373574e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.5503324712e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.4022647914e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.9314720286e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // A product, not a sum of exponents: a NaN must stay one.
  const FloatVector two_to_n = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, two_to_n));
}

/// tanh(x) to a few ULP; the polynomial is a minimax fit of (tanh(x) / x - 1) / x^2 on [0, 0.6].
HWY_INLINE FloatVector tanh_vector(FloatVector x) {
  const FloatTag d;
  const FloatVector z = hn::Mul(x, x);
  FloatVector p = hn::Set(d, -5.8951583857e-3f);
  p = hn::MulAdd(p, z, hn::Set(d, 2.0795971942e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.3783830365e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.3331924128e-1f));
  p = hn::MulAdd(p, z, hn::Set(d, -3.3333298002e-1f));
  const FloatVector near_zero = hn::MulAdd(hn::Mul(p, z), x, x);
  // Elsewhere 1 - 2e / (1 + e) with e = exp(-2|x|), which neither overflows nor cancels.
  const FloatVector magnitude = hn::Abs(x);
  const FloatVector e = exp2_vector(hn::Mul(magnitude, hn::Set(d, -2.8853900818f)));
  const FloatVector one = hn::Set(d, 1.0f);
  const FloatVector far = hn::Sub(one, hn::Div(hn::Add(e, e), hn::Add(one, e)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.6f)), near_zero, hn::CopySign(far, x));
}

/// kLanes floats from 16-bit ones.
HWY_INLINE FloatVector load_bf16(const std::uint16_t* from) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, from))));
}

/// To nearest even; NaN stays NaN.
HWY_INLINE void store_bf16(FloatVector value, std::uint16_t* to) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  rounded = hn::IfThenElse(is_nan, hn::Or(bits, hn::Set(du, 0x400000u)), rounded);
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(rounded))), d16, to);
  (void)d;
}

#if HWY_TARGET == HWY_EMU128
// Highway's emulation starts this maximum at the lowest finite number, and loses infinities and NaN
// of fp16.
HWY_INLINE float max_of_lanes(FloatVector value) {
  float lanes[kLanes];
  hn::StoreU(value, FloatTag(), lanes);
  float max = lanes[0];
  for (Index i = 1; i < kLanes; ++i) max = lanes[i] > max ? lanes[i] : max;
  return max;
}
HWY_INLINE FloatVector load_f16(const std::uint16_t* from) {
  float wide[kLanes];
  for (Index i = 0; i < kLanes; ++i) wide[i] = f16_to_float(from[i]);
  return hn::LoadU(FloatTag(), wide);
}
HWY_INLINE void store_f16(FloatVector value, std::uint16_t* to) {
  float wide[kLanes];
  hn::StoreU(value, FloatTag(), wide);
  for (Index i = 0; i < kLanes; ++i) to[i] = float_to_f16(wide[i]);
}
#else
HWY_INLINE float max_of_lanes(FloatVector value) {
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), value));
}
HWY_INLINE FloatVector load_f16(const std::uint16_t* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  return hn::PromoteTo(FloatTag(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE void store_f16(FloatVector value, std::uint16_t* to) {
  const hn::Rebind<hwy::float16_t, FloatTag> d16;
  hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(to));
}
#endif
