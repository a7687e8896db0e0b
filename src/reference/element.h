// src/reference/element.h: reads and writes one element of any floating type, bit by bit.
//
// Written apart from the backends' conversions on purpose: the reference shares no code with them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tilewright/dtype.h"

namespace tilewright::reference {

inline float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 15) << 31;
  const std::uint32_t exponent = (bits >> 10) & 31;
  const std::uint32_t mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// Round to nearest, ties to even; NaN stays NaN.
inline std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Round to nearest, ties to even; overflow gives infinity; NaN stays NaN.
inline std::uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  std::uint32_t half = 0;
  if (std::isnan(value)) {
    half = 0x7e00;
  } else if (magnitude < 0x1p-14f) {
    // Subnormal: a multiple of 2^-24; 1024 of them carry into the first normal number.
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  } else if (magnitude >= 65520.0f) {
    half = 0x7c00;
  } else {
    const std::uint32_t rounded = (bits & 0x7fffffff) + 0xfff + ((bits >> 13) & 1);
    half = (rounded >> 13) - (112u << 10);
  }
  return static_cast<std::uint16_t>(sign | half);
}

inline float load(const void* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[index];
    case DType::bf16:
      return float_from_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case DType::f16:
      return float_from_f16(static_cast<const std::uint16_t*>(data)[index]);
    case DType::boolean:
    case DType::i32:
    case DType::i64:
      break;
  }
  return std::numeric_limits<float>::quiet_NaN();
}

inline void store(void* data, DType dtype, std::int64_t index, float value) {
  if (dtype == DType::f32) {
    static_cast<float*>(data)[index] = value;
  } else if (dtype == DType::bf16) {
    static_cast<std::uint16_t*>(data)[index] = bf16_from_float(value);
  } else if (dtype == DType::f16) {
    static_cast<std::uint16_t*>(data)[index] = f16_from_float(value);
  }
}

/// value rounded to dtype.
inline float rounded(DType dtype, float value) {
  float bits = 0;
  store(&bits, dtype, 0, value);
  return load(&bits, dtype, 0);
}

/// Largest relative error of rounding to nearest: half the distance from 1 to the next number.
constexpr double unit_roundoff(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-24;
}

}  // namespace tilewright::reference
