// tests/problem/counts_test.cpp: visible scores and FLOPs against counting them one by one.
#include <gtest/gtest.h>

#include "reference/random.h"
#include "tilewright/attention.h"

namespace tilewright {
namespace {

// Straight from mask.h's words.
bool sees(const Mask& mask, std::int64_t i, std::int64_t j, std::int64_t q_len,
          std::int64_t kv_len) {
  const std::int64_t c = mask.diagonal == Diagonal::bottom_right ? i + kv_len - q_len : i;
  return (!mask.causal || j <= c) && (mask.window_left < 0 || j >= c - mask.window_left) &&
         (mask.window_right < 0 || j <= c + mask.window_right);
}

double counted(const Mask& mask, std::int64_t q_len, std::int64_t kv_len) {
  double count = 0;
  for (std::int64_t i = 0; i < q_len; ++i) {
    for (std::int64_t j = 0; j < kv_len; ++j) count += sees(mask, i, j, q_len, kv_len) ? 1 : 0;
  }
  return count;
}

AttentionProblem problem_of(const Mask& mask, std::int64_t q_len, std::int64_t kv_len) {
  AttentionSpec spec;
  spec.batch = 3;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.q_lengths.max_tokens = q_len;
  spec.kv_lengths.max_tokens = kv_len;
  spec.qk_dim = 5;
  spec.v_dim = 7;
  spec.mask = mask;
  return *AttentionProblem::create(spec);
}

TEST(Counts, visible_scores_of_all_small_shapes_and_masks) {
  for (const bool causal : {false, true}) {
    for (const Diagonal diagonal : {Diagonal::bottom_right, Diagonal::top_left}) {
      for (std::int64_t q_len = 0; q_len <= 7; ++q_len) {
        for (std::int64_t kv_len = 0; kv_len <= 7; ++kv_len) {
          for (std::int64_t left = -1; left <= 8; ++left) {
            for (std::int64_t right = -1; right <= 8; ++right) {
              const Mask mask{causal, diagonal, left, right};
              const AttentionProblem problem = problem_of(mask, q_len, kv_len);
              const double scores = 12 * counted(mask, q_len, kv_len);
              ASSERT_EQ(problem.visible_scores(), scores)
                  << q_len << "x" << kv_len << " causal " << causal << " top_left "
                  << (diagonal == Diagonal::top_left) << " window " << left << "," << right;
              ASSERT_EQ(problem.flops(), 2 * 12 * scores);
            }
          }
        }
      }
    }
  }
}

TEST(Counts, visible_scores_of_larger_random_shapes) {
  reference::Random random(20);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t q_len = random.integer(1, 200);
    const std::int64_t kv_len = random.integer(1, 200);
    const Mask mask{random.chance(0.5), random.choose({Diagonal::bottom_right, Diagonal::top_left}),
                    random.integer(-1, 210), random.integer(-1, 210)};
    ASSERT_EQ(problem_of(mask, q_len, kv_len).visible_scores(), 12 * counted(mask, q_len, kv_len))
        << q_len << "x" << kv_len << " window " << mask.window_left << "," << mask.window_right;
  }
}

TEST(Counts, long_sequences_do_not_overflow) {
  const AttentionProblem problem = problem_of({}, std::int64_t{1} << 40, std::int64_t{1} << 40);
  EXPECT_EQ(problem.visible_scores(), 12.0 * 0x1p80);
  const double half =
      problem_of({true}, std::int64_t{1} << 40, std::int64_t{1} << 40).visible_scores();
  EXPECT_NEAR(half / (12.0 * 0x1p80), 0.5, 1e-9);
}

}  // namespace
}  // namespace tilewright
