// tests/problem/problem_test.cpp: every field of a spec is checked, and its message names the
// field, its value and what is accepted.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tilewright/attention.h"

namespace tilewright {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

AttentionSpec valid_spec() {
  AttentionSpec spec;
  spec.batch = 2;
  spec.heads = 6;
  spec.kv_heads = 3;
  spec.q_lengths.max_tokens = 10;
  spec.kv_lengths.max_tokens = 20;
  spec.qk_dim = 64;
  return spec;
}

// A change that makes the valid spec wrong, and the message it must give. `value` marks which.
struct Fault {
  const char* message;
  std::function<void(AttentionSpec&)> plant;
};

void PrintTo(const Fault& fault, std::ostream* os) {
  *os << fault.message;
}

class ProblemFault : public testing::TestWithParam<Fault> {};

TEST_P(ProblemFault, Case29_names_field_value_and_what_is_accepted) {
  AttentionSpec spec = valid_spec();
  ASSERT_TRUE(AttentionProblem::create(spec).ok());
  GetParam().plant(spec);
  const auto problem = AttentionProblem::create(spec);
  ASSERT_FALSE(problem.ok());
  EXPECT_EQ(problem.status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(problem.status().message(), GetParam().message);
}

using S = AttentionSpec;

INSTANTIATE_TEST_SUITE_P(
    Shapes, ProblemFault,
    testing::Values(
        Fault{"batch is -1; accepted: 0 to 2147483648", [](S& s) { s.batch = -1; }},
        Fault{"batch is 2147483649; accepted: 0 to 2147483648", [](S& s) { s.batch = 2147483649; }},
        Fault{"heads is 0; accepted: 1 to 16777216", [](S& s) { s.heads = 0; }},
        Fault{"heads is -6; accepted: 1 to 16777216", [](S& s) { s.heads = -6; }},
        Fault{"heads is 9223372036854775807; accepted: 1 to 16777216",
              [](S& s) { s.heads = kMost; }},
        Fault{"kv_heads is 0; accepted: 1 to 16777216", [](S& s) { s.kv_heads = 0; }},
        Fault{"kv_heads is 4; accepted: a divisor of heads, which is 6",
              [](S& s) { s.kv_heads = 4; }},
        Fault{"kv_heads is 12; accepted: a divisor of heads, which is 6",
              [](S& s) { s.kv_heads = 12; }},
        Fault{"qk_dim is 0; accepted: 1 to 256", [](S& s) { s.qk_dim = 0; }},
        Fault{"qk_dim is 257; accepted: 1 to 256", [](S& s) { s.qk_dim = 257; }},
        Fault{"v_dim is -1; accepted: 1 to 256", [](S& s) { s.v_dim = -1; }},
        Fault{"v_dim is 512; accepted: 1 to 256", [](S& s) { s.v_dim = 512; }},
        Fault{"q_len is -1; accepted: 0 to 1099511627776",
              [](S& s) { s.q_lengths.max_tokens = -1; }},
        Fault{"kv_len is 1099511627777; accepted: 0 to 1099511627776",
              [](S& s) { s.kv_lengths.max_tokens = 1099511627777; }},
        Fault{"q_lengths.kind is 3; accepted: 0 fixed, 1 per_sequence, 2 cumulative",
              [](S& s) { s.q_lengths.kind = static_cast<LengthKind>(3); }},
        Fault{"kv_lengths.kind is 255; accepted: 0 fixed, 1 per_sequence, 2 cumulative",
              [](S& s) { s.kv_lengths.kind = static_cast<LengthKind>(255); }},
        Fault{"q_lengths.space is 2; accepted: 0 host, 1 device",
              [](S& s) { s.q_lengths.space = static_cast<MemorySpace>(2); }},
        Fault{"q_lengths.total_tokens is 7; accepted: 0 unless lengths are cumulative (batch 2 "
              "fixes it)",
              [](S& s) { s.q_lengths.total_tokens = 7; }},
        Fault{"batch 100 x heads 6 x q_len 1099511627776 is 6.6e+14 rows; accepted: at most 2^48",
              [](S& s) {
                s.batch = 100;
                s.q_lengths.max_tokens = 1099511627776;
              }},
        Fault{"batch 2147483648 x heads 16777216 x kv_len 20 is 7.21e+17 rows; accepted: at most "
              "2^48",
              [](S& s) {
                s.batch = 2147483648;
                s.heads = s.kv_heads = 16777216;
                s.q_lengths.max_tokens = 0;
              }},
        Fault{"kv_lengths.total_tokens is -1; accepted: 0 to 2147483647",
              [](S& s) {
                s.kv_lengths = {LengthKind::cumulative, 5, -1};
              }},
        Fault{"kv_lengths.total_tokens is 2147483648; accepted: 0 to 2147483647", [](S& s) {
                s.kv_lengths = {LengthKind::cumulative, 5, 2147483648};
              }}));

INSTANTIATE_TEST_SUITE_P(
    Types, ProblemFault,
    testing::Values(
        Fault{"dtype is i32 (4); accepted: f32, bf16, f16", [](S& s) { s.dtype = DType::i32; }},
        Fault{"dtype is bool (3); accepted: f32, bf16, f16",
              [](S& s) { s.dtype = DType::boolean; }},
        Fault{"dtype is unknown (77); accepted: f32, bf16, f16",
              [](S& s) { s.dtype = static_cast<DType>(77); }},
        Fault{"o_dtype is bf16 (1); accepted: f32 or f32", [](S& s) { s.o_dtype = DType::bf16; }},
        Fault{"o_dtype is f16 (2); accepted: bf16 or f32",
              [](S& s) {
                s.dtype = DType::bf16;
                s.o_dtype = DType::f16;
              }},
        Fault{"bias.dtype is i64; accepted for an additive bias: f32, bf16, f16", [](S& s) {
                s.bias = {BiasKind::additive, DType::i64};
              }}));

INSTANTIATE_TEST_SUITE_P(
    Scores, ProblemFault,
    testing::Values(
        Fault{"scale is inf; accepted: any finite fp32 value", [](S& s) { s.scale = INFINITY; }},
        Fault{"scale is nan; accepted: any finite fp32 value",
              [](S& s) { s.scale = std::nan(""); }},
        Fault{"scale is 1e+39; accepted: any finite fp32 value", [](S& s) { s.scale = 1e39; }},
        Fault{"softcap is -1; accepted: 0 (none) or a positive finite fp32 value",
              [](S& s) { s.softcap = -1; }},
        Fault{"softcap is nan; accepted: 0 (none) or a positive finite fp32 value",
              [](S& s) { s.softcap = std::nan(""); }},
        Fault{"softcap is 1e-60; accepted: 0 (none) or a positive finite fp32 value",
              [](S& s) { s.softcap = 1e-60; }},
        Fault{"mask.diagonal is 2; accepted: 0 bottom_right, 1 top_left",
              [](S& s) { s.mask.diagonal = static_cast<Diagonal>(2); }},
        Fault{"mask.window_left is -2; accepted: -1 to 9223372036854775807",
              [](S& s) { s.mask.window_left = -2; }},
        Fault{"mask.window_right is -9223372036854775808; accepted: -1 to 9223372036854775807",
              [](S& s) { s.mask.window_right = kLeast; }},
        Fault{"alibi is 3; accepted: 0 none, 1 per_head, 2 per_batch_head",
              [](S& s) { s.alibi = static_cast<PerHead>(3); }},
        Fault{"sinks is 9; accepted: 0 none, 1 per_head, 2 per_batch_head",
              [](S& s) { s.sinks = static_cast<PerHead>(9); }},
        Fault{"bias.kind is 3; accepted: 0 none, 1 additive, 2 boolean",
              [](S& s) { s.bias.kind = static_cast<BiasKind>(3); }},
        Fault{"bias.q_stride is 9223372036854775807; accepted: -2^56 to 2^56",
              [](S& s) { s.bias = {BiasKind::additive, DType::f32, 0, 0, kMost, 1}; }},
        Fault{"bias.kv_stride is -72057594037927936 over 20 elements; accepted: offsets below 2^59",
              [](S& s) {
                s.bias = {BiasKind::boolean, DType::f32, 0, 0, 0, -(std::int64_t{1} << 56)};
              }}));

INSTANTIATE_TEST_SUITE_P(
    Layout, ProblemFault,
    testing::Values(
        Fault{"q.alignment_bytes is 3; accepted: 0 or a power of two from 4 to 4096",
              [](S& s) { s.q.alignment_bytes = 3; }},
        Fault{"k.alignment_bytes is -4; accepted: 0 or a power of two from 4 to 4096",
              [](S& s) { s.k.alignment_bytes = -4; }},
        Fault{"v.alignment_bytes is 2; accepted: 0 or a power of two from 4 to 4096",
              [](S& s) { s.v.alignment_bytes = 2; }},
        Fault{"o.alignment_bytes is 8192; accepted: 0 or a power of two from 4 to 4096",
              [](S& s) { s.o.alignment_bytes = 8192; }},
        Fault{"q.strides.token is -9223372036854775808; accepted: -2^56 to 2^56",
              [](S& s) {
                s.q.strides = Strides{1, kLeast, 1, 1};
              }},
        Fault{"k.strides.head is 72057594037927937; accepted: -2^56 to 2^56",
              [](S& s) {
                s.k.strides = Strides{1, 1, (std::int64_t{1} << 56) + 1, 1};
              }},
        Fault{"v.strides.token is 72057594037927936 over 20 elements; accepted: offsets below 2^59",
              [](S& s) {
                s.v.strides = Strides{1, std::int64_t{1} << 56, 1, 1};
              }},
        Fault{"o.strides.batch is 0 over 2 elements; accepted: nonzero, since an output is written "
              "once",
              [](S& s) {
                s.o.strides = Strides{0, 384, 64, 1};
              }},
        Fault{"o.strides.dim is 0 over 64 elements; accepted: nonzero, since an output is written "
              "once",
              [](S& s) {
                s.o.strides = Strides{3840, 384, 64, 0};
              }}));

TEST(Problem, fills_in_every_default) {
  AttentionSpec spec = valid_spec();
  spec.dtype = DType::bf16;
  spec.mask.window_left = 30;  // as far as any key is: bounds nothing
  spec.mask.window_right = 29;
  const auto problem = AttentionProblem::create(spec);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  EXPECT_EQ(problem->spec().v_dim, 64);
  EXPECT_EQ(problem->o_dtype(), DType::bf16);
  EXPECT_EQ(problem->scale(), 0.125);
  EXPECT_EQ(problem->q(), Strides::bshd(10, 6, 64));
  EXPECT_EQ(problem->k(), Strides::bshd(20, 3, 64));
  EXPECT_EQ(problem->v(), Strides::bshd(20, 3, 64));
  EXPECT_EQ(problem->o(), Strides::bshd(10, 6, 64));
  EXPECT_EQ(problem->spec().q.alignment_bytes, 2);
  EXPECT_EQ(problem->spec().mask.window_left, -1);
  EXPECT_EQ(problem->spec().mask.window_right, 29);
  EXPECT_EQ(problem->group(), 2);
  EXPECT_EQ(problem->lse_rows(), 2 * 6 * 10);
}

TEST(Problem, creating_again_from_a_checked_spec_changes_nothing) {
  AttentionSpec spec = valid_spec();
  spec.mask.window_left = 3;
  spec.q_lengths = {LengthKind::cumulative, 10, 15};
  const auto once = AttentionProblem::create(spec);
  ASSERT_TRUE(once.ok());
  const auto twice = AttentionProblem::create(once->spec());
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(*once, *twice);
  EXPECT_EQ(once->lse_rows(), 6 * 15);
  EXPECT_EQ(once->q(), Strides::bshd(15, 6, 64));
}

TEST(Problem, accepts_the_ends_of_every_range) {
  AttentionSpec spec = valid_spec();
  spec.batch = 0;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 0;
  spec.qk_dim = 1;
  spec.v_dim = 256;
  spec.scale = -0.0;
  spec.mask.window_left = spec.mask.window_right = kMost;
  EXPECT_TRUE(AttentionProblem::create(spec).ok());
  spec = valid_spec();
  spec.q.strides = Strides{0, 0, 0, 0};
  spec.o.strides = Strides{-3840, -384, -64, -1};
  EXPECT_TRUE(AttentionProblem::create(spec).ok());
  // Outputs without elements cannot overlap.
  spec = valid_spec();
  spec.q_lengths.max_tokens = 0;
  EXPECT_TRUE(AttentionProblem::create(spec).ok());
}

}  // namespace
}  // namespace tilewright
