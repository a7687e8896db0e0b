// cli/numbers.h: reads and writes single elements of any float type, and draws random ones.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "tilewright/dtype.h"

namespace tilewright::cli {

inline float load_f32(const void* data, DType dtype, std::int64_t i) {
  if (dtype == DType::f32) return static_cast<const float*>(data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

/// Rounds a finite value to nearest even.
inline void store_f32(void* data, DType dtype, std::int64_t i, float value) {
  if (dtype == DType::f32) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  auto& bits = static_cast<std::uint16_t*>(data)[i];
  if (dtype == DType::f16) {
    bits = std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
    return;
  }
  const auto wide = std::bit_cast<std::uint32_t>(value);
  bits = static_cast<std::uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

}  // namespace tilewright::cli
