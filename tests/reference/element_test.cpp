// tests/reference/element_test.cpp: 16-bit conversions of the reference, exhaustively.
#include "reference/element.h"

#include <gtest/gtest.h>

namespace tilewright::reference {
namespace {

TEST(Element, every_bf16_and_f16_survives_a_round_trip) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float half = float_from_f16(bits);
    const float brain = float_from_bf16(bits);
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(float_from_f16(f16_from_float(half)))) << i;
    } else {
      EXPECT_EQ(f16_from_float(half), bits) << i;
    }
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(brain)))) << i;
    } else {
      EXPECT_EQ(bf16_from_float(brain), bits) << i;
    }
  }
}

// Between any two neighbours: the middle goes to the even one, a hair beside it to the nearer.
template <typename ToFloat, typename FromFloat>
void expect_rounds_to_nearest_even(std::uint16_t last_finite, ToFloat to_float,
                                   FromFloat from_float) {
  for (std::uint16_t low = 0; low < last_finite; ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle = (static_cast<double>(to_float(low)) + to_float(high)) / 2;
    const auto exact = static_cast<float>(middle);
    if (static_cast<double>(exact) != middle) continue;  // beyond fp32's subnormals
    EXPECT_EQ(from_float(exact), low % 2 == 0 ? low : high) << low;
    EXPECT_EQ(from_float(std::nextafter(exact, 0.0f)), low) << low;
    EXPECT_EQ(from_float(std::nextafter(exact, INFINITY)), high) << low;
    EXPECT_EQ(from_float(-exact), (low % 2 == 0 ? low : high) | 0x8000) << low;
  }
}

TEST(Element, bf16_rounds_to_nearest_even) {
  expect_rounds_to_nearest_even(0x7f7f, float_from_bf16, bf16_from_float);
}

TEST(Element, f16_rounds_to_nearest_even) {
  expect_rounds_to_nearest_even(0x7bff, float_from_f16, f16_from_float);
}

TEST(Element, overflow_is_infinity_and_nan_stays_nan) {
  EXPECT_EQ(f16_from_float(65519.0f), 0x7bff);
  EXPECT_EQ(f16_from_float(65520.0f), 0x7c00);
  EXPECT_EQ(f16_from_float(-1e30f), 0xfc00);
  EXPECT_EQ(bf16_from_float(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7fffffffu)))));
}

TEST(Element, known_values) {
  EXPECT_EQ(float_from_f16(0x3c00), 1.0f);
  EXPECT_EQ(float_from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(float_from_f16(0xc248), -3.140625f);
  EXPECT_EQ(float_from_bf16(0x4049), 3.140625f);
}

}  // namespace
}  // namespace tilewright::reference
