// tests/conformance/numbers_test.cpp: the numbers themselves: large logits, head dims, every term
// of the score, LSE, splits, and random problems over everything.
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/check.h"
#include "reference/element.h"
#include "reference/random.h"
#include "reference/random_problem.h"
#include "support/scale.h"

namespace tilewright::conformance {
namespace {

TEST(Numbers, Case03_ragged_tails_with_large_logits) {
  reference::Random random(test::first_seed(3));
  for (const std::int64_t length :
       {1, 2, 7, 31, 63, 64, 65, 97, 127, 128, 129, 191, 192, 193, 251, 255, 256, 257}) {
    for (const double factor : {1.0, 100.0, 10000.0}) {
      Case what = fixed_case(random.choose<std::int64_t>({1, 2, 64, 65, length}), length,
                             random.choose({DType::f32, DType::bf16, DType::f16}));
      what.seed = random.bits();
      what.spec.scale = factor / 8;
      what.spec.mask.causal = random.chance(0.5);
      expect_conforms(what);
    }
  }
}

TEST(Numbers, Case11_every_head_dim) {
  reference::Random random(test::first_seed(4));
  const std::int64_t step = test::scaled(100) >= 100 ? 1 : 17;
  for (std::int64_t dim = 1; dim <= 256; dim += step) {
    Case what = fixed_case(9, 21, random.choose({DType::f32, DType::bf16, DType::f16}));
    what.spec.qk_dim = dim;
    what.spec.v_dim = random.chance(0.5) ? dim : 257 - dim;
    what.spec.heads = what.spec.kv_heads = 2;
    expect_conforms(what);
  }
}

TEST(Numbers, Case11_a_head_dim_above_256_is_refused_by_name) {
  Case what = fixed_case(9, 21);
  what.spec.qk_dim = 257;
  const auto problem = AttentionProblem::create(what.spec);
  ASSERT_FALSE(problem.ok());
  EXPECT_EQ(problem.status().message(), "qk_dim is 257; accepted: 1 to 256");
}

TEST(Numbers, each_term_of_the_score_alone_and_all_together) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (int terms = 0; terms < 32; ++terms) {
      Case what = fixed_case(30, 75, dtype);
      what.name = "terms " + std::to_string(terms);
      what.spec.heads = 2;
      what.spec.batch = 2;
      what.spec.qk_dim = 24;
      if (terms & 1) what.spec.softcap = 2.5;
      if (terms & 2) what.spec.alibi = PerHead::per_head;
      if (terms & 4) what.spec.bias = {BiasKind::additive, dtype, 0, 30 * 75, 75, 1};
      if (terms & 8) what.spec.sinks = PerHead::per_batch_head;
      if (terms & 16) what.spec.mask.causal = true;
      expect_conforms(what);
    }
  }
}

// Kernels of a backend may differ by head dim, and by what a score is made of.
TEST(Numbers, softcap_and_alibi_at_every_native_head_dim) {
  reference::Random random(test::first_seed(6));
  for (const auto& [qk_dim, v_dim] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {64, 64}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}}) {
    for (int terms = 0; terms < 8; ++terms) {
      Case what = fixed_case(random.integer(120, 260), random.integer(200, 400),
                             random.choose({DType::bf16, DType::f16}));
      what.spec.qk_dim = qk_dim;
      what.spec.v_dim = v_dim;
      if (terms & 1) what.spec.softcap = random.choose({0.5, 20.0, 50.0, 1000.0});
      if (terms & 2) what.spec.alibi = PerHead::per_head;
      if (terms & 4) what.spec.mask.causal = true;
      expect_conforms(what);
    }
  }
}

// Few queries of many heads a KV head: a backend may put the heads of a group into one tile.
TEST(Numbers, groups_of_heads_with_few_queries) {
  reference::Random random(test::first_seed(7));
  const std::int64_t step = test::scaled(100) >= 100 ? 1 : 7;
  std::int64_t at = 0;
  for (const std::int64_t group : {2, 3, 4, 5, 7, 8, 16, 33, 64, 65, 128}) {
    for (const std::int64_t q_len : {1, 2, 5, 9, 31, 70}) {
      if (q_len * group > 600 || at++ % step != 0) continue;
      Case what =
          fixed_case(q_len, random.integer(1, 300), random.choose({DType::bf16, DType::f16}));
      what.seed = random.bits();
      what.spec.batch = 2;
      what.spec.kv_heads = group > 16 ? 1 : 2;
      what.spec.heads = group * what.spec.kv_heads;
      what.spec.qk_dim = random.choose<std::int64_t>({64, 128, 256});
      what.spec.mask.causal = random.chance(0.5);
      if (random.chance(0.3)) what.spec.mask.diagonal = Diagonal::top_left;
      if (random.chance(0.2)) what.spec.softcap = 5;
      if (random.chance(0.2)) what.spec.scale = -0.1;
      if (random.chance(0.3)) what.spec.mask.window_left = random.integer(0, 100);
      if (random.chance(0.5)) what.spec.sinks = PerHead::per_batch_head;
      if (random.chance(0.3)) what.spec.o_dtype = DType::f32;
      if (random.chance(0.5)) {
        const auto tokens = static_cast<std::int32_t>(q_len);
        what.spec.q_lengths.kind = LengthKind::cumulative;
        what.spec.q_lengths.total_tokens = q_len + 1;
        what.q_lengths = {0, 1, tokens + 1};
      }
      expect_conforms(what);
    }
  }
}

// Small enough for compute-sanitizer.
TEST(Numbers, a_group_of_three_heads) {
  Case what = fixed_case(2, 150);
  what.spec.kv_heads = 2;
  what.spec.heads = 6;
  expect_conforms(what);
}

TEST(Numbers, any_finite_scale) {
  for (const double scale : {0.0, -1.0, 1e-30, 3.0, -250.0}) {
    Case what = fixed_case(30, 40);
    what.spec.scale = scale;
    expect_conforms(what);
  }
}

TEST(Numbers, sinks_from_absent_to_overwhelming) {
  for (const float sink : {-INFINITY, -1e30f, -50.0f, 0.0f, 50.0f, 1e4f}) {
    Case what = fixed_case(33, 40, DType::bf16);
    what.spec.sinks = PerHead::per_head;
    what.spec.mask.causal = true;
    ProblemData data = make(what);
    data.set(TensorId::sinks, [&](const ElementIndex&) { return sink; });
    expect_conforms(data);
  }
}

TEST(Numbers, alibi_slopes_of_either_sign_over_long_distances) {
  for (const float slope : {0.0f, 0.004f, 0.5f, -0.25f, 3.0f}) {
    Case what = fixed_case(40, 700);
    what.spec.alibi = PerHead::per_head;
    ProblemData data = make(what);
    data.set(TensorId::alibi_slopes, [&](const ElementIndex&) { return slope; });
    expect_conforms(data);
  }
}

TEST(Numbers, values_at_the_ends_of_fp16) {
  Case what = fixed_case(20, 30, DType::f16);
  ProblemData data = make(what);
  reference::Random random(5);
  data.set(TensorId::v, [&](const ElementIndex&) {
    return random.choose({65504.0f, -65504.0f, 0x1p-24f, -0x1p-15f, 0.0f, 1.0f});
  });
  expect_conforms(data);
}

TEST(Numbers, Case20_lse_is_the_natural_logarithm_of_the_denominator) {
  for (const std::int64_t kv_len : {1, 2, 64, 1000}) {
    Case what = fixed_case(3, kv_len, DType::bf16);
    ProblemData data = make(what);
    data.set(TensorId::q, [](const ElementIndex&) { return 0.0f; });
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name());
      if (!run_one(*variant, data)) continue;
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(data.tensors().lse[i], std::log(static_cast<double>(kv_len)), 1e-6);
      }
    }
  }
}

TEST(Numbers, Case20_a_null_lse_changes_nothing_else) {
  ProblemData data = make(fixed_case(70, 90));
  for (const auto& variant : variants()) {
    SCOPED_TRACE(variant->name());
    if (!run_one(*variant, data)) continue;
    const auto* o = static_cast<const std::byte*>(data.tensors().o);
    const auto bytes = static_cast<std::ptrdiff_t>(70 * 64 * size_bytes(usual_dtype()));
    const std::vector<std::byte> with_lse(o, o + bytes);
    data.prepare_run();
    Call call = call_of(data);
    call.tensors.lse = nullptr;
    ASSERT_TRUE(variant->run(call, {}).ok());
    EXPECT_EQ(with_lse, std::vector<std::byte>(o, o + bytes));
    EXPECT_TRUE(std::isnan(data.tensors().lse[0]));
  }
}

// A long row in many parts: partial results kept in 16 bits would drift far beyond the tolerance of
// an fp32 output.
TEST(Numbers, Case21_long_rows_of_16_bit_inputs_keep_fp32_precision) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Case what = fixed_case(2, 20000, dtype);
    what.spec.qk_dim = 16;
    what.spec.o_dtype = DType::f32;
    expect_conforms(what);
  }
}

TEST(Numbers, long_sequences_on_sampled_rows) {
  Case what = fixed_case(3000, 3000);
  what.spec.qk_dim = 16;
  what.spec.mask.causal = true;
  ProblemData data = make(what);
  expect_conforms(data, {}, 200);
}

// The property behind all others. Each case is one parameter, so that a failure names its seed.
class RandomProblems : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomProblems, conform) {
  reference::RandomLimits limits;
  limits.max_flops = 3e7;
  for (std::uint64_t i = 0; i < 20; ++i) {
    expect_conforms(reference::random_case(GetParam() * 20 + i, limits));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems,
                         testing::Range(test::first_seed(1000),
                                        test::first_seed(1000) +
                                            static_cast<std::uint64_t>(test::scaled(10))));

}  // namespace
}  // namespace tilewright::conformance
