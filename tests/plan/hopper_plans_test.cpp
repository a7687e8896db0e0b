// tests/plan/hopper_plans_test.cpp: plans for the Hopper kernels: their tiles, and heads that share
// them.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/choose.h"
#include "plan/hopper_forward.h"
#include "schedule/hopper_forward.h"
#include "tests/plan/some_problems.h"

namespace tilewright {
namespace {

// Tiles that hand-written Hopper kernels use pass; the next step up, which their authors note as
// hitting the limit, does not.
TEST(HopperPlans, TilesPassAndFailWhereHandWrittenKernelsDo) {
  const struct {
    int qk_dim, v_dim, q_rows, kv_rows;
    bool fits;
    int tile_bytes;
  } cases[] = {
      {64, 64, 192, 128, true, 0},        {96, 96, 192, 128, true, 0},
      {128, 128, 128, 128, true, 163840}, {128, 128, 128, 176, true, 212992},
      {128, 128, 128, 192, true, 229376}, {128, 128, 128, 208, false, 245760},
      {192, 192, 128, 112, true, 0},      {192, 192, 128, 128, false, 0},
      {192, 128, 128, 128, true, 0},      {256, 256, 128, 80, true, 229376},
      {256, 256, 128, 96, false, 0},
  };
  for (const auto& c : cases) {
    schedule::HopperForwardSpecialisation s;
    s.qk_dim = c.qk_dim;
    s.v_dim = c.v_dim;
    s.tile = {c.q_rows, c.kv_rows, 2};
    const schedule::HopperForwardFootprint bytes = schedule::footprint(s);
    EXPECT_EQ(bytes.total_bytes() <= 232448, c.fits)
        << c.qk_dim << ": " << c.q_rows << "x" << c.kv_rows << " " << bytes.total_bytes();
    EXPECT_TRUE(c.tile_bytes == 0 || bytes.total_bytes() - bytes.control_bytes == c.tile_bytes);
  }
  // The planner agrees with the kernels' own rule, and offers what they accept.
  const AttentionProblem p = problem(square(4096, 256, DType::bf16));
  PlanOptions options;
  options.tile = Tile{128, 96};
  const Result<Plan> refused = plan(p, profile("h200"), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("has 232448"), std::string::npos)
      << refused.status().message();
  options.tile = offered_tile(refused.status().message());
  ASSERT_TRUE(options.tile.has_value());
  EXPECT_TRUE(plan(p, profile("h200"), options).ok());
}

TEST(HopperPlans, PlansAreWhatTheKernelsAccept) {
  const Machine machine = profile("h200");
  for (std::int64_t dim = 8; dim <= 256; dim += 8) {
    for (const bool causal : {false, true}) {
      AttentionSpec spec = square(4096, dim, DType::bf16);
      spec.mask.causal = causal;
      const AttentionProblem p = problem(spec);
      const Plan chosen = plan(p, machine).value();
      EXPECT_EQ(chosen.family, KernelFamily::hopper_forward);
      EXPECT_TRUE(schedule::legal(hopper_specialisation(p, chosen.forward()), 232448));
      EXPECT_EQ(chosen.workspace_bytes,
                hopper_workspace(p, chosen.forward().kv_splits).total_bytes);
    }
  }
}

TEST(HopperPlans, ReasonsNameTheShippedTileAndTheSplitsThatWereCosted) {
  AttentionSpec spec = square(8192, 128, DType::bf16);
  EXPECT_NE(plan(problem(spec), profile("h200"))->reason.find("is the tile that its kernels are"),
            std::string::npos);
  spec.q_lengths.max_tokens = 1;
  const Plan split = plan(problem(spec), profile("h200")).value();
  EXPECT_NE(split.reason.find("take the least modelled time of"), std::string::npos)
      << split.reason;
}

// Its waves come out even, where rounding once left less than nothing for the last.
TEST(HopperPlans, NoWaveTakesNegativeTime) {
  AttentionSpec spec = square(100, 96, DType::bf16);
  spec.heads = 264;
  spec.kv_heads = 8;
  spec.kv_lengths.max_tokens = 1000;
  spec.mask.causal = true;
  spec.mask.diagonal = Diagonal::top_left;
  EXPECT_GE(plan(problem(spec), profile("h200"))->time.tail_seconds, 0);
}

TEST(HopperPlans, PacksAGroupsHeadsWhereThatSparesQueryTiles) {
  const Machine machine = profile("h200");
  AttentionSpec spec = square(8192, 128, DType::bf16);
  spec.batch = 16;
  spec.heads = 64;
  spec.kv_heads = 8;
  spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
  const auto packed = [&](std::int64_t q_len, const PlanOptions& options = {}) {
    spec.q_lengths.max_tokens = q_len;
    return plan(problem(spec), machine, options)->forward().packed_heads;
  };
  for (const std::int64_t few : {1, 4, 8, 17, 64}) {
    EXPECT_EQ(packed(few), 8) << few;
    EXPECT_EQ(plan(problem(spec), machine)->forward().tile.q_rows, 64) << few;
  }
  for (const std::int64_t many : {128, 256, 2048, 8192}) {
    EXPECT_EQ(packed(many), 1) << many;
    EXPECT_EQ(plan(problem(spec), machine)->forward().tile.q_rows, 128) << many;
  }
  PlanOptions given;
  given.tile = Tile{64, 64};
  EXPECT_EQ(packed(1, given), 8);
  given.tile = Tile{128, 64};
  EXPECT_EQ(packed(1, given), 1);

  spec.q_lengths.max_tokens = 1;
  const Plan whole = plan(problem(spec), machine).value();
  const auto k = std::find_if(whole.traffic.tensors.begin(), whole.traffic.tensors.end(),
                              [](const TensorTraffic& tensor) { return tensor.tensor == "k"; });
  ASSERT_NE(k, whole.traffic.tensors.end());
  EXPECT_EQ(k->bytes_read, std::int64_t{16} * 8 * 8192 * 128 * 2) << "K is read once";
}

}  // namespace
}  // namespace tilewright
