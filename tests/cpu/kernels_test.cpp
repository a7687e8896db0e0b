// tests/cpu/kernels_test.cpp: each instruction set's exp2 and tanh against fp64, 16-bit
// conversions, and packing and products by results that are exact.
#include "backend/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/half.h"
#include "cpu/cpu_run.h"
#include "reference/element.h"
#include "reference/random.h"

namespace tilewright::cpu_test {
namespace {

using schedule::Index;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double ulps(float got, double want) {
  const auto nearest = static_cast<float>(std::abs(want));
  const double ulp = static_cast<double>(std::nextafter(nearest, kInfinity)) - nearest;
  return std::abs(static_cast<double>(got) - want) / ulp;
}

class Kernels : public testing::TestWithParam<std::string> {
 protected:
  const cpu::Kernels& kernels() const { return **cpu::find_kernels(GetParam(), DType::f32); }

  // The worst error of `function` over 2^18 values drawn by `value`.
  template <class Value>
  double worst_ulps(void (*function)(const float*, float*, Index), double (*exact)(double),
                    const Value& value) const {
    reference::Random random(5);
    double worst = 0;
    float from[64];
    float to[64];
    for (int i = 0; i < 1 << 12; ++i) {
      for (float& x : from) x = value(random);
      function(from, to, 64);
      for (int j = 0; j < 64; ++j) worst = std::max(worst, ulps(to[j], exact(from[j])));
    }
    return worst;
  }
};

TEST_P(Kernels, exp2_is_within_one_ulp) {
  // Without fused multiply-add each step rounds twice.
  const double allowed = GetParam() == "portable" ? 1.5 : 1.0;
  double (*const exact)(double) = std::exp2;
  EXPECT_LE(worst_ulps(kernels().exp2, exact,
                       [](auto& random) { return static_cast<float>(-126 * random.uniform()); }),
            allowed);
  EXPECT_LE(worst_ulps(kernels().exp2, exact,
                       [](auto& random) { return static_cast<float>(1 - 2 * random.uniform()); }),
            allowed);
}

TEST_P(Kernels, exp2_is_exact_where_masks_rely_on_it) {
  alignas(64) float x[16] = {0, -0.0f, -1, 1, -kInfinity, -126.5f, -1e30f, kNan, -126};
  // A NaN with every payload bit set must not turn into a number.
  x[9] = std::bit_cast<float>(0x7fffffffu);
  x[10] = std::bit_cast<float>(0xffffffffu);
  float y[16];
  kernels().exp2(x, y, 16);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], 0.5f);
  EXPECT_EQ(y[3], 2);
  for (const int i : {4, 5, 6}) EXPECT_EQ(y[i], 0) << i;
  EXPECT_EQ(y[8], 0x1p-126f);
  for (const int i : {7, 9, 10}) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST_P(Kernels, tanh_is_within_four_ulps) {
  double (*const exact)(double) = std::tanh;
  for (const double size : {1e-3, 0.1, 0.61, 3.0, 20.0}) {
    EXPECT_LE(worst_ulps(kernels().tanh, exact,
                         [&](auto& random) {
                           return static_cast<float>(size * (2 * random.uniform() - 1));
                         }),
              4.0)
        << size;
  }
  alignas(64) float x[16] = {0, kInfinity, -kInfinity, kNan, 100, -100};
  float y[16];
  kernels().tanh(x, y, 16);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], -1);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 1);
  EXPECT_EQ(y[5], -1);
}

// Query i picks component i % dim, of which only key picked(i % dim) has any: O is that key's row
// of V, bit for bit, if and only if every element was packed and multiplied in its place.
TEST_P(Kernels, every_element_meets_its_own) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t dim : {1, 2, 7, 16, 40, 64, 100, 128, 256}) {
      for (const std::int64_t q_tokens : {5, 16, 43}) {
        reference::Case what;
        what.spec.dtype = dtype;
        what.spec.q_lengths.max_tokens = q_tokens;
        what.spec.kv_lengths.max_tokens = 83;
        what.spec.qk_dim = dim;
        what.spec.v_dim = 257 - dim;
        what.spec.scale = 1;
        auto data = reference::ProblemData::create(what);
        ASSERT_TRUE(data.ok());
        const auto picked = [](std::int64_t d) { return (d * 37 + 11) % 83; };
        using reference::ElementIndex;
        data->set(reference::TensorId::q,
                  [&](const ElementIndex& at) { return at.dim == at.token % dim ? 1.0f : 0.0f; });
        data->set(reference::TensorId::k, [&](const ElementIndex& at) {
          return at.token == picked(at.dim) ? 300.0f : 0.0f;
        });
        data->set(reference::TensorId::v, [&](const ElementIndex& at) {
          return static_cast<float>((at.token * 31 + at.dim * 7) % 251) - 125;
        });
        for (const Schedule schedule : {Schedule::q_outer, Schedule::standard}) {
          data->prepare_run();
          const Plan plan = make_plan(data->problem(), {GetParam(), {24, 32}, 1, schedule});
          ASSERT_TRUE(run(plan, data->tensors()).ok());
          for (std::int64_t i = 0; i < q_tokens; ++i) {
            for (std::int64_t d = 0; d < 257 - dim; ++d) {
              const float got = reference::load(data->tensors().o, dtype, i * (257 - dim) + d);
              const auto want = static_cast<float>((picked(i % dim) * 31 + d * 7) % 251) - 125;
              ASSERT_EQ(got, want) << name(dtype) << " dim " << dim << " query " << i << " column "
                                   << d << " " << name(schedule);
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Kernels, testing::ValuesIn(cpu::instruction_sets()),
                         [](const auto& param_info) { return param_info.param; });

TEST(Half, widening_every_pattern_is_exact) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const bool brain : {false, true}) {
      const float got = brain ? cpu::bf16_to_float(half) : cpu::f16_to_float(half);
      const float want = brain ? reference::float_from_bf16(half) : reference::float_from_f16(half);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << bits;
    }
  }
}

TEST(Half, rounding_is_to_nearest_even) {
  reference::Random random(9);
  for (int i = 0; i < 1 << 20; ++i) {
    float value = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
    // Half of them near fp16's range, where ties and subnormals are.
    if (i % 2 == 0)
      value = static_cast<float>(
          std::ldexp(random.uniform(), static_cast<int>(random.integer(-30, 17))));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(cpu::f16_to_float(cpu::float_to_f16(value))));
      EXPECT_TRUE(std::isnan(cpu::bf16_to_float(cpu::float_to_bf16(value))));
      continue;
    }
    ASSERT_EQ(cpu::float_to_f16(value), reference::f16_from_float(value)) << value;
    ASSERT_EQ(cpu::float_to_bf16(value), reference::bf16_from_float(value)) << value;
  }
}

}  // namespace
}  // namespace tilewright::cpu_test
