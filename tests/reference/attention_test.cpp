// tests/reference/attention_test.cpp: the fp64 reference against values worked out by hand.
#include "reference/attention.h"

#include <gtest/gtest.h>

#include "reference/problem_data.h"

namespace tilewright::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Case small_case(std::int64_t q_len, std::int64_t kv_len, std::int64_t dim = 2) {
  Case what;
  what.name = "small";
  what.spec.q_lengths.max_tokens = q_len;
  what.spec.kv_lengths.max_tokens = kv_len;
  what.spec.qk_dim = dim;
  return what;
}

std::vector<Row<double>> rows_of(ProblemData& data) {
  return attention(data.problem(), data.tensors(), all_rows(data.problem(), data.tensors()));
}

// Score of key j is logit[j] for every query, and v is one-hot: o reads the probabilities.
ProblemData with_logits(Case what, const std::vector<float>& logits) {
  what.spec.kv_lengths.max_tokens = static_cast<std::int64_t>(logits.size());
  what.spec.qk_dim = 1;
  what.spec.v_dim = static_cast<std::int64_t>(logits.size());
  if (!what.spec.scale) what.spec.scale = 1.0;
  ProblemData data = *ProblemData::create(what);
  data.set(TensorId::q, [](const ElementIndex&) { return 1.0f; });
  data.set(TensorId::k,
           [&](const ElementIndex& e) { return logits[static_cast<std::size_t>(e.token)]; });
  data.set(TensorId::v, [](const ElementIndex& e) { return e.token == e.dim ? 1.0f : 0.0f; });
  return data;
}

TEST(Reference, softmax_of_two_logits) {
  ProblemData data = with_logits(small_case(1, 2), {0.0f, std::log(3.0f)});
  const auto rows = rows_of(data);
  EXPECT_NEAR(rows[0].o[0], 0.25, 1e-7);
  EXPECT_NEAR(rows[0].o[1], 0.75, 1e-7);
  EXPECT_NEAR(rows[0].lse, std::log(4.0), 1e-7);
}

TEST(Reference, scale_multiplies_before_softcap_caps) {
  Case what = small_case(1, 2);
  what.spec.scale = -2.0;
  what.spec.softcap = 3.0;
  ProblemData data = with_logits(what, {0.0f, -1.0f});
  const double capped = 3 * std::tanh(2.0 / 3);
  EXPECT_NEAR(rows_of(data)[0].o[1], std::exp(capped) / (1 + std::exp(capped)), 1e-12);
}

TEST(Reference, a_sink_takes_part_in_the_denominator_alone) {
  Case what = small_case(1, 2);
  what.spec.sinks = PerHead::per_head;
  ProblemData data = with_logits(what, {0.0f, 0.0f});
  data.set(TensorId::sinks, [](const ElementIndex&) { return static_cast<float>(std::log(2.0)); });
  const auto rows = rows_of(data);
  EXPECT_NEAR(rows[0].o[0], 0.25, 1e-7);
  EXPECT_NEAR(rows[0].o[1], 0.25, 1e-7);
  EXPECT_NEAR(rows[0].lse, std::log(4.0), 1e-7);
}

TEST(Reference, a_row_without_keys_is_zero_and_its_lse_the_sink) {
  Case what = small_case(3, 1);
  what.spec.mask.causal = true;  // bottom-right: only the last query sees the key
  ProblemData data = with_logits(what, {5.0f});
  auto rows = rows_of(data);
  EXPECT_EQ(rows[0].o[0], 0.0);
  EXPECT_EQ(rows[0].lse, -kInfinity);
  EXPECT_EQ(rows[2].o[0], 1.0);
  what.spec.sinks = PerHead::per_head;
  ProblemData with_sink = with_logits(what, {5.0f});
  with_sink.set(TensorId::sinks, [](const ElementIndex&) { return 1.5f; });
  rows = rows_of(with_sink);
  EXPECT_EQ(rows[0].o[0], 0.0);
  EXPECT_EQ(rows[0].lse, 1.5);
}

TEST(Reference, alibi_follows_the_distance_from_the_bottom_right_diagonal) {
  Case what = small_case(2, 3);
  what.spec.alibi = PerHead::per_head;
  what.spec.mask.diagonal = Diagonal::top_left;  // moves the mask, not the distance
  ProblemData data = with_logits(what, {0.0f, 0.0f, 0.0f});
  data.set(TensorId::alibi_slopes, [](const ElementIndex&) { return 0.5f; });
  // Query 0's diagonal key is 1: distances 1, 0, 1. Query 1's is 2: 2, 1, 0.
  const auto rows = rows_of(data);
  EXPECT_NEAR(rows[0].o[0] / rows[0].o[1], std::exp(-0.5), 1e-12);
  EXPECT_NEAR(rows[0].o[2] / rows[0].o[1], std::exp(-0.5), 1e-12);
  EXPECT_NEAR(rows[1].o[0] / rows[1].o[2], std::exp(-1.0), 1e-12);
}

TEST(Reference, biases_add_or_mask) {
  Case what = small_case(1, 3);
  what.spec.bias = {BiasKind::boolean, DType::f32, 0, 0, 0, 1};
  ProblemData masked = with_logits(what, {0.0f, 0.0f, 0.0f});
  masked.set(TensorId::bias, [](const ElementIndex& e) { return e.dim == 1 ? 0.0f : 1.0f; });
  EXPECT_EQ(rows_of(masked)[0].o, (std::vector<double>{0.5, 0.0, 0.5}));
  what.spec.bias = {BiasKind::additive, DType::f16, 0, 0, 0, 1};
  ProblemData added = with_logits(what, {0.0f, 0.0f, 0.0f});
  added.set(TensorId::bias, [](const ElementIndex& e) { return e.dim == 1 ? -INFINITY : 0.25f; });
  const auto rows = rows_of(added);
  EXPECT_EQ(rows[0].o, (std::vector<double>{0.5, 0.0, 0.5}));
  EXPECT_NEAR(rows[0].lse, 0.25 + std::log(2.0), 1e-12);
}

// Rows of o as strings of the keys they see: 'x' seen, '.' not.
std::vector<std::string> seen(std::int64_t q_len, std::int64_t kv_len, const Mask& mask) {
  Case what = small_case(q_len, kv_len);
  what.spec.mask = mask;
  ProblemData data = with_logits(what, std::vector<float>(static_cast<std::size_t>(kv_len)));
  std::vector<std::string> pictures;
  for (const Row<double>& row : rows_of(data)) {
    std::string picture;
    for (const double o : row.o) picture += o != 0 ? 'x' : '.';
    pictures.push_back(picture);
  }
  return pictures;
}

TEST(Reference, masks_as_pictures) {
  using Pictures = std::vector<std::string>;
  EXPECT_EQ(seen(2, 4, {true}), (Pictures{"xxx.", "xxxx"}));
  EXPECT_EQ(seen(2, 4, {true, Diagonal::top_left}), (Pictures{"x...", "xx.."}));
  EXPECT_EQ(seen(4, 2, {true}), (Pictures{"..", "..", "x.", "xx"}));
  EXPECT_EQ(seen(3, 5, {false, Diagonal::bottom_right, 1, 1}),
            (Pictures{".xxx.", "..xxx", "...xx"}));
  EXPECT_EQ(seen(3, 3, {false, Diagonal::bottom_right, 0, 0}), (Pictures{"x..", ".x.", "..x"}));
  EXPECT_EQ(seen(3, 3, {false, Diagonal::bottom_right, -1, 1}), (Pictures{"xx.", "xxx", "xxx"}));
  EXPECT_EQ(seen(3, 3, {true, Diagonal::bottom_right, 1, 2}), (Pictures{"x..", "xx.", ".xx"}));
}

TEST(Reference, query_heads_share_kv_heads_in_groups) {
  Case what = small_case(1, 1);
  what.spec.heads = 6;
  what.spec.kv_heads = 2;
  ProblemData data = *ProblemData::create(what);
  data.set(TensorId::v, [](const ElementIndex& e) { return static_cast<float>(e.head); });
  const auto rows = rows_of(data);
  for (std::size_t h = 0; h < 6; ++h) EXPECT_EQ(rows[h].o[0], h < 3 ? 0.0 : 1.0) << h;
}

TEST(Reference, lengths_are_clamped_to_their_bounds) {
  const std::int32_t padded[] = {-3, 2, 99};
  Lengths lengths{LengthKind::per_sequence, 5};
  EXPECT_EQ(token_range(lengths, padded, 0).tokens, 0);
  EXPECT_EQ(token_range(lengths, padded, 1).tokens, 2);
  EXPECT_EQ(token_range(lengths, padded, 2).tokens, 5);
  const std::int32_t packed[] = {2, 4, 4, 12, 50};
  lengths = {LengthKind::cumulative, 5, 14};
  const std::int64_t first[] = {2, 4, 4, 12};
  const std::int64_t tokens[] = {2, 0, 5, 2};
  for (std::int64_t b = 0; b < 4; ++b) {
    EXPECT_EQ(token_range(lengths, packed, b).first_row, first[b]) << b;
    EXPECT_EQ(token_range(lengths, packed, b).tokens, tokens[b]) << b;
  }
}

TEST(Reference, nan_in_a_seen_key_makes_the_row_nan_and_no_other) {
  Case what = small_case(3, 3);
  what.spec.mask.causal = true;
  ProblemData data = with_logits(what, {1.0f, 1.0f, std::nanf("")});
  const auto rows = rows_of(data);
  EXPECT_EQ(rows[1].o[0], 0.5);
  EXPECT_TRUE(std::isnan(rows[2].o[0]));
  EXPECT_TRUE(std::isnan(rows[2].lse));
}

TEST(Reference, sampled_rows_hold_the_ends_and_repeat) {
  Case what = small_case(1000, 1);
  what.spec.batch = 3;
  ProblemData data = *ProblemData::create(what);
  const auto rows = sample_rows(data.problem(), data.tensors(), 20, 7);
  EXPECT_EQ(rows.front(), (RowIndex{0, 0, 0}));
  EXPECT_EQ(rows.back(), (RowIndex{2, 0, 999}));
  EXPECT_GE(rows.size(), 15u);
  EXPECT_EQ(rows, sample_rows(data.problem(), data.tensors(), 20, 7));
}

TEST(Reference, threads_do_not_change_the_result) {
  Case what = small_case(150, 30);
  what.spec.heads = what.spec.kv_heads = 3;
  ProblemData data = *ProblemData::create(what);
  const auto list = all_rows(data.problem(), data.tensors());
  const auto one = attention(data.problem(), data.tensors(), list, 1);
  const auto four = attention(data.problem(), data.tensors(), list, 4);
  ASSERT_EQ(one.size(), 450u);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].o, four[i].o) << i;
}

}  // namespace
}  // namespace tilewright::reference
