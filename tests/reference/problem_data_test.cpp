// tests/reference/problem_data_test.cpp: poisoned buffers notice stray reads and writes, and random
// problems are valid and cover every feature.
#include "reference/problem_data.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "reference/element.h"
#include "reference/random_problem.h"

namespace tilewright::reference {
namespace {

Case padded_case() {
  Case what;
  what.name = "padded";
  what.spec.batch = 2;
  what.spec.q_lengths = {LengthKind::per_sequence, 5};
  what.spec.kv_lengths = {LengthKind::per_sequence, 7};
  what.spec.qk_dim = 3;
  what.spec.dtype = DType::bf16;
  what.q_lengths = {5, 2};
  what.kv_lengths = {0, 7};
  return what;
}

TEST(ProblemData, what_lies_outside_the_sequences_is_nan) {
  ProblemData data = *ProblemData::create(padded_case());
  const auto k = [&](std::int64_t token, std::int64_t batch) {
    return load(data.tensors().k, DType::bf16, batch * 7 * 3 + token * 3);
  };
  for (std::int64_t t = 0; t < 7; ++t) {
    EXPECT_TRUE(std::isnan(k(t, 0))) << t;
    EXPECT_FALSE(std::isnan(k(t, 1))) << t;
  }
  EXPECT_TRUE(std::isnan(load(data.tensors().k, DType::bf16, -1)));
  EXPECT_TRUE(std::isnan(load(data.tensors().k, DType::bf16, 2 * 7 * 3)));
}

TEST(ProblemData, a_write_outside_the_rows_is_noticed) {
  for (const std::int64_t element : {-1, 15 + 6, 15 + 14, 30}) {
    ProblemData data = *ProblemData::create(padded_case());
    data.prepare_run();
    EXPECT_EQ(data.violation(), std::nullopt);
    store(data.tensors().o, DType::bf16, element, 0.0f);
    ASSERT_NE(data.violation(), std::nullopt) << element;
    EXPECT_EQ(data.violation()->rfind("o was written at byte " + std::to_string(element * 2), 0),
              0u)
        << *data.violation();
  }
}

TEST(ProblemData, a_write_inside_the_rows_is_not) {
  ProblemData data = *ProblemData::create(padded_case());
  data.prepare_run();
  for (const std::int64_t element : {0, 14, 15, 20}) {
    store(data.tensors().o, DType::bf16, element, 0.0f);
  }
  data.tensors().lse[0] = data.tensors().lse[6] = 1;
  EXPECT_EQ(data.violation(), std::nullopt);
  data.tensors().lse[7] = 1;
  EXPECT_NE(data.violation(), std::nullopt);
}

TEST(ProblemData, a_changed_input_is_noticed) {
  ProblemData data = *ProblemData::create(padded_case());
  data.prepare_run();
  store(const_cast<void*>(data.tensors().v), DType::bf16, 25, 9.0f);
  ASSERT_NE(data.violation(), std::nullopt);
  EXPECT_EQ(data.violation()->rfind("v was written", 0), 0u);
}

TEST(ProblemData, other_bytes_outside_leave_the_inside_alone) {
  ProblemData data = *ProblemData::create(padded_case());
  const float inside = load(data.tensors().k, DType::bf16, 21);
  data.set_outside(0x3f80);  // 1.0 in bf16
  EXPECT_EQ(load(data.tensors().k, DType::bf16, 21), inside);
  EXPECT_EQ(load(data.tensors().k, DType::bf16, 0), 1.0f);
}

TEST(ProblemData, addresses_are_aligned_as_promised_and_no_better) {
  Case what = padded_case();
  what.spec.q.alignment_bytes = 64;
  ProblemData data = *ProblemData::create(what);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.tensors().q) % 128, 64u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.tensors().k) % 4, 2u);
}

TEST(RandomProblem, the_same_seed_gives_the_same_case) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(to_text(random_case(seed)), to_text(random_case(seed)));
  }
  EXPECT_NE(to_text(random_case(1)), to_text(random_case(2)));
}

TEST(RandomProblem, cases_are_valid_and_reach_every_feature) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Case what = random_case(seed);
    const auto problem = AttentionProblem::create(what.spec);
    ASSERT_TRUE(problem.ok()) << problem.status().message() << "\n" << to_text(what);
    const AttentionSpec& s = what.spec;
    seen.insert("dtype " + std::string(name(s.dtype)));
    seen.insert("q lengths " + std::to_string(static_cast<int>(s.q_lengths.kind)));
    seen.insert("kv lengths " + std::to_string(static_cast<int>(s.kv_lengths.kind)));
    seen.insert("bias " + std::to_string(static_cast<int>(s.bias.kind)));
    seen.insert("alibi " + std::to_string(static_cast<int>(s.alibi)));
    seen.insert("sinks " + std::to_string(static_cast<int>(s.sinks)));
    if (s.mask.causal) seen.insert("causal");
    if (s.mask.diagonal == Diagonal::top_left) seen.insert("top left");
    if (s.mask.window_left >= 0) seen.insert("window left");
    if (s.mask.window_right >= 0) seen.insert("window right");
    if (s.softcap > 0) seen.insert("softcap");
    if (s.scale && *s.scale == 0) seen.insert("scale zero");
    if (s.scale && *s.scale < 0) seen.insert("scale negative");
    if (s.scale && *s.scale > 100) seen.insert("scale huge");
    if (s.heads != s.kv_heads) seen.insert("grouped heads");
    if (s.v_dim != s.qk_dim) seen.insert("two dims");
    if (*s.o_dtype != s.dtype) seen.insert("wide o");
    if (s.qk_dim > 192) seen.insert("large dim");
    if (s.k.strides && s.k.strides->token == 0) seen.insert("expanded");
    if (s.k.strides && s.k.strides->token < 0) seen.insert("reversed");
    if (s.o.strides && s.o.strides->dim != 1) seen.insert("o transposed");
    for (const std::int32_t tokens : what.q_lengths) {
      if (tokens == 0) seen.insert("no queries");
    }
  }
  // 3 each of six kinds, and the 16 named ones.
  EXPECT_EQ(seen.size(), 18u + 16u) << testing::PrintToString(seen);
}

}  // namespace
}  // namespace tilewright::reference
