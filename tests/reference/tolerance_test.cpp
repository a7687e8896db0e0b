// tests/reference/tolerance_test.cpp: the tolerance passes what is right and catches planted
// faults.
#include "reference/tolerance.h"

#include <gtest/gtest.h>

#include <functional>

#include "reference/problem_data.h"
#include "reference/random_problem.h"
#include "support/scale.h"

namespace tilewright::reference {
namespace {

using WriteRow = std::function<Row<double>(const Head&, std::int64_t query)>;

// Writes rows into o and lse, rounded to their dtypes.
void write(ProblemData& data, const WriteRow& make) {
  const AttentionProblem& problem = data.problem();
  const AttentionTensors t = data.tensors();
  const auto rows = all_rows(problem, t);
  for_each_row(problem, t, rows, [&](std::size_t i, const Head& head) {
    const Row<double> row = make(head, rows[i].query);
    const std::int64_t first = head.queries.offset(problem.o(), rows[i].query, rows[i].head);
    for (std::size_t d = 0; d < row.o.size(); ++d) {
      store(t.o, problem.o_dtype(), first + static_cast<std::int64_t>(d) * problem.o().dim,
            static_cast<float>(row.o[d]));
    }
    t.lse[lse_index(problem, t, rows[i])] = static_cast<float>(row.lse);
  });
}

Comparison judge(const ProblemData& data) {
  return compare(data.problem(), data.tensors(), all_rows(data.problem(), data.tensors()));
}

ProblemData correct_result(const Case& what) {
  ProblemData data = *ProblemData::create(what);
  data.prepare_run();
  write(data, exact_row);
  return data;
}

// A result that is right for `done`, judged against `asked`, which has the same tensors.
Comparison judge_other(const Case& asked, const Case& done) {
  ProblemData result = correct_result(done);
  ProblemData wanted = *ProblemData::create(asked);
  AttentionTensors t = wanted.tensors();
  t.o = result.tensors().o;
  t.lse = result.tensors().lse;
  return compare(wanted.problem(), t, all_rows(wanted.problem(), t));
}

Case sized(DType dtype, std::int64_t q_len, std::int64_t kv_len, std::int64_t dim = 64) {
  Case what;
  what.name = "sized";
  what.spec.dtype = dtype;
  what.spec.q_lengths.max_tokens = q_len;
  what.spec.kv_lengths.max_tokens = kv_len;
  what.spec.qk_dim = dim;
  return what;
}

class Tolerance : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, Tolerance, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST_P(Tolerance, passes_the_exact_result_rounded_once) {
  const Comparison result = judge(correct_result(sized(GetParam(), 40, 300)));
  EXPECT_TRUE(result.ok()) << to_text(result, "exact", 1);
  EXPECT_EQ(result.rows, 40);
}

TEST_P(Tolerance, passes_standard_attention) {
  ProblemData data = *ProblemData::create(sized(GetParam(), 40, 300));
  write(data, [](const Head& head, std::int64_t query) {
    const Row<float> row = standard_row(head, query);
    return Row<double>{{row.o.begin(), row.o.end()}, row.lse};
  });
  EXPECT_TRUE(judge(data).ok());
}

TEST_P(Tolerance, catches_one_flipped_sign) {
  ProblemData data = correct_result(sized(GetParam(), 20, 100));
  const std::int64_t at = 7 * 64 + 5;
  const DType dtype = GetParam();
  store(data.tensors().o, dtype, at, -load(data.tensors().o, dtype, at));
  const Comparison result = judge(data);
  EXPECT_EQ(result.failures, 1);
  EXPECT_EQ(result.worst.index, (RowIndex{0, 0, 7}));
  EXPECT_EQ(result.worst.dim, 5);
}

TEST_P(Tolerance, catches_one_dropped_key) {
  for (const std::int64_t kv_len : {1, 2, 65, 4096}) {
    ProblemData data = *ProblemData::create(sized(GetParam(), 4, kv_len));
    write(data, [](const Head& head, std::int64_t query) {
      Head shorter = head;
      shorter.keys.tokens -= 1;
      return exact_row(shorter, query);
    });
    EXPECT_FALSE(judge(data).ok()) << kv_len;
  }
}

TEST_P(Tolerance, catches_one_key_counted_twice) {
  ProblemData data = *ProblemData::create(sized(GetParam(), 4, 1000));
  write(data, [](const Head& head, std::int64_t query) {
    Head longer = head;
    const std::size_t row = 64;
    longer.k.insert(longer.k.end(), head.k.end() - row, head.k.end());
    longer.v.insert(longer.v.end(), head.v.end() - row, head.v.end());
    longer.keys.tokens += 1;
    return exact_row(longer, query);
  });
  EXPECT_FALSE(judge(data).ok());
}

TEST_P(Tolerance, catches_a_window_that_is_off_by_one) {
  for (const bool left : {true, false}) {
    Case asked = sized(GetParam(), 200, 200);
    asked.spec.mask.window_left = asked.spec.mask.window_right = 50;
    Case done = asked;
    (left ? done.spec.mask.window_left : done.spec.mask.window_right) = 51;
    EXPECT_FALSE(judge_other(asked, done).ok());
    EXPECT_FALSE(judge_other(done, asked).ok());
  }
}

TEST_P(Tolerance, catches_the_wrong_diagonal_scale_softcap_and_slope) {
  const Case asked = sized(GetParam(), 60, 61);
  Case causal = asked;
  causal.spec.mask.causal = true;
  Case top_left = causal;
  top_left.spec.mask.diagonal = Diagonal::top_left;
  EXPECT_FALSE(judge_other(causal, top_left).ok());
  Case scaled = asked;
  scaled.spec.scale = 0.9 / std::sqrt(64.0);
  EXPECT_FALSE(judge_other(asked, scaled).ok());
  Case capped = asked;
  capped.spec.softcap = 5;
  EXPECT_FALSE(judge_other(asked, capped).ok());
  Case alibi = asked;
  alibi.spec.alibi = PerHead::per_head;
  EXPECT_FALSE(judge_other(asked, alibi).ok());
}

TEST_P(Tolerance, catches_nan_infinity_and_rows_left_unwritten) {
  const DType dtype = GetParam();
  for (const float wrong : {std::nanf(""), INFINITY, -INFINITY}) {
    ProblemData data = correct_result(sized(dtype, 8, 20));
    store(data.tensors().o, dtype, 3, wrong);
    const Comparison result = judge(data);
    EXPECT_EQ(result.failures, 1) << wrong;
    EXPECT_EQ(result.worst.dim, 3);
    EXPECT_TRUE(std::isinf(result.worst.ratio()));
  }
  ProblemData data = *ProblemData::create(sized(dtype, 8, 20));
  data.prepare_run();
  const Comparison result = judge(data);
  EXPECT_EQ(result.failures, 8 * 64 + 8);  // every element of o, and every lse
}

TEST_P(Tolerance, judges_lse) {
  for (const float factor : {1.0f - 1e-4f, 1.0f + 1e-4f}) {
    ProblemData data = correct_result(sized(GetParam(), 8, 500));
    data.tensors().lse[6] *= factor;
    const Comparison result = judge(data);
    EXPECT_EQ(result.failures, 1);
    EXPECT_EQ(result.worst.dim, -1);
    EXPECT_EQ(result.worst.index, (RowIndex{0, 0, 6}));
  }
}

TEST_P(Tolerance, wants_nan_where_the_reference_has_it) {
  ProblemData data = *ProblemData::create(sized(GetParam(), 4, 9));
  data.set(TensorId::q, [](const ElementIndex& e) { return e.token == 2 ? NAN : 1.0f; });
  write(data, exact_row);
  EXPECT_TRUE(judge(data).ok());
  const AttentionTensors t = data.tensors();
  store(t.o, GetParam(), 2 * 64, 0.0f);
  EXPECT_FALSE(judge(data).ok());
}

TEST_P(Tolerance, a_row_of_one_dominant_key_must_match_to_the_last_bits) {
  Case what = sized(GetParam(), 30, 200);
  what.spec.scale = 1e4;
  ProblemData data = correct_result(what);
  ASSERT_TRUE(judge(data).ok());
  for (const ExpectedRow& row :
       expected_rows(data.problem(), data.tensors(), all_rows(data.problem(), data.tensors()))) {
    EXPECT_LT(row.o_allowed, 60 * unit_roundoff(GetParam())) << row.index.query;
  }
}

TEST(TolerancePrinted, names_index_values_plan_and_seed) {
  ProblemData data = correct_result(sized(DType::f32, 8, 20));
  static_cast<float*>(data.tensors().o)[5 * 64 + 9] += 1.0f;
  const std::string text = to_text(judge(data), "tile 64x64", 4242);
  for (const char* part : {"batch 0", "head 0", "row 5", "o dim 9", "tile 64x64", "seed 4242"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

// The tolerance must not flake: results with only rounding errors pass over every feature.
TEST(ToleranceProperty, exact_results_pass_on_random_problems) {
  const std::uint64_t seed = test::first_seed(100);
  RandomLimits limits;
  limits.max_flops = 2e7;
  for (std::int64_t i = 0; i < test::scaled(60); ++i) {
    const Case what = random_case(seed + static_cast<std::uint64_t>(i), limits);
    ProblemData data = *ProblemData::create(what);
    data.prepare_run();
    write(data, exact_row);
    const Comparison result = judge(data);
    EXPECT_TRUE(result.ok()) << to_text(result, to_text(what), what.seed);
    EXPECT_EQ(data.violation(), std::nullopt) << to_text(what);
  }
}

}  // namespace
}  // namespace tilewright::reference
