// tests/cli/plain_attention_test.cpp: the loops that judge files know answers found by hand.
#include "plain_attention.h"

#include <gtest/gtest.h>

namespace tilewright::test {
namespace {

// One head of dim 1 over two keys with scores 0 and log 3, values 10 and 20.
PlainProblem two_keys() {
  PlainProblem problem;
  problem.q_len = 1;
  problem.kv_len = 2;
  problem.dim = problem.v_dim = 1;
  problem.q = [](auto, auto, auto) { return 1.0; };
  problem.k = [](auto, auto token, auto) { return token == 0 ? 0.0 : std::log(3.0); };
  problem.v = [](auto, auto token, auto) { return token == 0 ? 10.0 : 20.0; };
  return problem;
}

TEST(PlainAttention, WeighsValuesByTheirKeys) {
  const PlainRow row = plain_row(two_keys(), 0, 0);
  EXPECT_DOUBLE_EQ(row.o[0], (1 * 10 + 3 * 20) / 4.0);
  EXPECT_DOUBLE_EQ(row.lse, std::log(4.0));
}

TEST(PlainAttention, MaskSinkBiasAndScaleEachMatter) {
  PlainProblem problem = two_keys();
  problem.visible = [](auto, auto key) { return key == 0; };
  EXPECT_DOUBLE_EQ(plain_row(problem, 0, 0).o[0], 10);
  problem = two_keys();
  problem.sink = [](auto) { return std::log(4.0); };
  EXPECT_DOUBLE_EQ(plain_row(problem, 0, 0).o[0], (1 * 10 + 3 * 20) / 8.0);
  problem = two_keys();
  problem.bias = [](auto, auto, auto key) { return key == 0 ? std::log(3.0) : 0.0; };
  EXPECT_DOUBLE_EQ(plain_row(problem, 0, 0).o[0], 15);
  problem = two_keys();
  problem.scale = 2;
  EXPECT_DOUBLE_EQ(plain_row(problem, 0, 0).o[0], (1 * 10 + 9 * 20) / 10.0);
  problem.softcap = 1e-9;
  EXPECT_NEAR(plain_row(problem, 0, 0).o[0], 15, 1e-6);
}

TEST(PlainAttention, ARowWithoutKeysIsZero) {
  PlainProblem problem = two_keys();
  problem.kv_len = 0;
  EXPECT_EQ(plain_row(problem, 0, 0).o[0], 0);
  EXPECT_EQ(plain_row(problem, 0, 0).lse, -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tilewright::test
