// src/backend/cpu/half.h: 16-bit floats to fp32 and back, one at a time, to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace tilewright::cpu {

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // A NaN must not round up to infinity: keep its sign and make it quiet.
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

constexpr float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  // Move the exponent's bias from 15 to 127 by a product, which makes subnormals normal too.
  constexpr float kRebias = 0x1p112f;
  const std::uint32_t magnitude =
      rest >= 0x0f800000 ? rest | 0x7f800000
                         : std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * kRebias);
  return std::bit_cast<float>(sign | magnitude);
}

constexpr std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // 65520 and up
  if (magnitude < 0x38800000) {
    // Below 2^-14 an ulp is 2^-24: adding 0.5, whose ulp in fp32 is 2^-24, rounds there.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace tilewright::cpu
