// src/backend/cuda/checksum.h: a 64-bit FNV-1a checksum, which finds damaged files; it is no
// defence against malice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::cuda {

constexpr std::uint64_t checksum(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325u) {
  std::uint64_t hash = seed;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3u;
  }
  return hash;
}

/// 16 lower-case hexadecimal digits.
inline std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (int digit = 15; digit >= 0; --digit, value >>= 4)
    text[digit] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace tilewright::cuda
