// tests/cuda/tanh_test.cpp: the kernels' tanh, in the host's own fp32, against the mathematical
// one.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/tile/tanh.h"

namespace tilewright::kernels {
namespace {

constexpr double kRoundoff = 0x1p-24;

/// As the kernels do it. Their reciprocal may be off by a unit in the last place: `steps` of them.
float tanh_of(float scaled, int steps) {
  const TanhRatio ratio = tanh_ratio(std::clamp(scaled, -kTanhLimit, kTanhLimit));
  const float reciprocal =
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(1.0f / ratio.denominator) + steps);
  return ratio.numerator * reciprocal;
}

/// Greatest relative error, in units of roundoff, of arguments from `low` on to `high`.
double worst(float low, float high) {
  double most = 0;
  const auto last = std::bit_cast<std::uint32_t>(high * kTanhScale);
  // A prime stride meets every pattern of low bits.
  for (auto bits = std::bit_cast<std::uint32_t>(low * kTanhScale); bits < last; bits += 241) {
    const auto scaled = std::bit_cast<float>(bits);
    const double want = std::tanh(static_cast<double>(scaled) / static_cast<double>(kTanhScale));
    for (const int steps : {-1, 0, 1}) {
      most = std::max(most, std::abs(tanh_of(scaled, steps) / want - 1) / kRoundoff);
    }
  }
  return most;
}

TEST(Tanh, IsRightToAFewUnitsOfRoundoffEverywhere) {
  EXPECT_LT(worst(1e-12f, 0x1p-13f), 3.6);
  EXPECT_LT(worst(0x1p-13f, 0.5f), 5.3);
  EXPECT_LT(worst(0.5f, 4.0f), 6.3);
  EXPECT_LT(worst(4.0f, 1000.0f), 7.3);
}

TEST(Tanh, IsOddAndEndsAtOne) {
  for (const float x : {0.0f, 1e-30f, 0.01f, 0.1f, 1.0f, INFINITY}) {
    EXPECT_EQ(tanh_of(-x, 0), -tanh_of(x, 0));
  }
  EXPECT_EQ(tanh_of(0.0f, 0), 0.0f);
  EXPECT_NEAR(tanh_of(INFINITY, 0), 1.0, 3e-7);
}

}  // namespace
}  // namespace tilewright::kernels
