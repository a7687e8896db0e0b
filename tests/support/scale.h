// tests/support/scale.h: how many random cases to run, less under sanitizers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace tilewright::test {

/// count times TILEWRIGHT_TEST_SCALE (1 when unset), at least 1.
inline std::int64_t scaled(std::int64_t count) {
  const char* text = std::getenv("TILEWRIGHT_TEST_SCALE");
  const double scale = text == nullptr ? 1.0 : std::atof(text);
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(count) * (scale > 0 ? scale : 1.0)));
}

/// The first seed of a random test: TILEWRIGHT_TEST_SEED, else the one given.
inline std::uint64_t first_seed(std::uint64_t usual) {
  const char* text = std::getenv("TILEWRIGHT_TEST_SEED");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

}  // namespace tilewright::test
