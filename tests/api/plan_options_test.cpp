// tests/api/plan_options_test.cpp: a plan does what its options insist on, says so, or refuses by
// name.
#include <gtest/gtest.h>

#include <regex>

#include "tilewright/tilewright.h"

namespace tilewright {
namespace {

AttentionProblem problem_of(std::int64_t q_len = 1000, std::int64_t kv_len = 1000,
                            std::int64_t dim = 64) {
  AttentionSpec spec;
  spec.batch = 2;
  spec.heads = spec.kv_heads = 4;
  spec.q_lengths.max_tokens = q_len;
  spec.kv_lengths.max_tokens = kv_len;
  spec.qk_dim = dim;
  return *AttentionProblem::create(spec);
}

// A CPU whose figures do not depend on where the test runs.
Machine machine_of(double l2_bytes) {
  Machine machine = this_cpu();
  for (Store& store : machine.stores) {
    if (store.name == "L2") store.capacity_bytes = {l2_bytes, Grade::read, "the test"};
  }
  machine.units = 4;
  return machine;
}

TEST(PlanOptions, Case24_the_plan_names_its_schedule_tile_and_reason) {
  const Result<Plan> chosen = plan(problem_of(), this_cpu());
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->family, KernelFamily::cpu_forward);
  EXPECT_GT(chosen->forward().tile.q_rows, 0);
  EXPECT_GT(chosen->forward().tile.kv_rows, 0);
  EXPECT_FALSE(chosen->reason.empty());
  EXPECT_FALSE(chosen->footprint.empty());
  const std::string text = to_text(*chosen);
  EXPECT_NE(text.find(name(chosen->forward().schedule)), std::string::npos) << text;
}

// Tiled attention must never turn into the quadratic kind by itself, however small the machine.
TEST(PlanOptions, Case24_the_unfused_schedule_is_never_chosen_silently) {
  for (const double l2_bytes : {65536.0, 262144.0, 2097152.0}) {
    for (const std::int64_t length : {1000, 20000}) {
      const Result<Plan> chosen = plan(problem_of(length, length, 256), machine_of(l2_bytes));
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      if (chosen->forward().schedule == Schedule::standard) {
        EXPECT_NE(chosen->reason.find("standard"), std::string::npos) << chosen->reason;
      }
      EXPECT_LT(chosen->workspace_bytes, std::int64_t{64} << 20) << to_text(*chosen);
    }
  }
}

TEST(PlanOptions, what_is_forced_is_done) {
  PlanOptions options;
  options.tile = Tile{24, 48};
  options.workers = 3;
  options.isa = "portable";
  options.schedule = Schedule::q_outer;
  options.kv_splits = 2;
  const Result<Plan> chosen = plan(problem_of(), this_cpu(), options);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(chosen->forward().tile, (Tile{24, 48}));
  EXPECT_EQ(chosen->forward().workers, 3);
  EXPECT_EQ(chosen->forward().kv_splits, 2);
  EXPECT_EQ(chosen->forward().isa, "portable");
  EXPECT_EQ(chosen->forward().schedule, Schedule::q_outer);
}

TEST(PlanOptions, plans_are_equal_when_what_they_are_made_from_is) {
  const Machine machine = machine_of(1 << 20);
  const Result<Plan> one = plan(problem_of(), machine);
  const Result<Plan> two = plan(problem_of(), machine);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(to_json(*one), to_json(*two));
}

// Need, have, what each part takes, and a tile that does fit: the one named must be accepted.
TEST(PlanOptions, Case12_a_tile_that_does_not_fit_is_refused_with_one_that_does) {
  for (const double l2_bytes : {101376.0, 262144.0, 1048576.0}) {
    for (const std::int64_t dim : {64, 128, 256}) {
      PlanOptions options;
      options.tile = Tile{2048, 512};
      const AttentionProblem problem = problem_of(4096, 4096, dim);
      const Machine machine = machine_of(l2_bytes);
      const Result<Plan> refused = plan(problem, machine, options);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.status().code(), StatusCode::does_not_fit);
      const std::string& message = refused.status().message();
      EXPECT_NE(message.find("2048x512"), std::string::npos) << message;
      EXPECT_NE(message.find(std::to_string(static_cast<std::int64_t>(l2_bytes))),
                std::string::npos)
          << message;
      const std::regex tile_pattern("([0-9]+)x([0-9]+)");
      Tile fits;
      for (std::sregex_iterator it(message.begin(), message.end(), tile_pattern), end; it != end;
           ++it) {
        fits = {std::stoll((*it)[1]), std::stoll((*it)[2])};
      }
      options.tile = fits;
      const Result<Plan> accepted = plan(problem, machine, options);
      EXPECT_TRUE(accepted.ok()) << message << "\n" << accepted.status().message();
    }
  }
}

TEST(PlanOptions, Case12_every_plan_fits_the_store_it_names) {
  for (const double l2_bytes : {65536.0, 101376.0, 262144.0, 2097152.0}) {
    for (const std::int64_t dim : {1, 64, 111, 256}) {
      const Result<Plan> chosen = plan(problem_of(3000, 5000, dim), machine_of(l2_bytes));
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      std::int64_t bytes = 0;
      for (const FootprintItem& item : chosen->footprint)
        bytes += item.store == "L2" ? item.bytes : 0;
      EXPECT_GT(bytes, 0) << to_text(*chosen);
      EXPECT_LE(static_cast<double>(bytes), l2_bytes) << to_text(*chosen);
    }
  }
}

TEST(PlanOptions, Case29_what_cannot_be_done_is_refused_by_name) {
  const auto refusal = [](const PlanOptions& options) {
    // A plan that is refused only when it runs is refused all the same.
    const AttentionProblem problem = problem_of(8, 8, 8);
    const Result<Plan> chosen = plan(problem, this_cpu(), options);
    if (!chosen.ok()) return chosen.status();
    std::vector<float> memory(2 * 4 * 8 * 8, 1.0f);
    std::vector<float> o = memory;
    AttentionTensors tensors;
    tensors.q = tensors.k = tensors.v = memory.data();
    tensors.o = o.data();
    return run(*chosen, tensors);
  };
  PlanOptions options;
  options.isa = "z80";
  EXPECT_NE(refusal(options).message().find("z80"), std::string::npos);
  options = {};
  options.tile = Tile{0, 16};
  EXPECT_NE(refusal(options).message().find("tile.q_rows is 0"), std::string::npos);
  options.tile = Tile{16, 17};
  EXPECT_NE(refusal(options).message().find("tile is 16x17"), std::string::npos);
  options = {};
  options.kv_splits = 0;
  EXPECT_NE(refusal(options).message().find("kv_splits is 0"), std::string::npos);
  options = {};
  options.workers = -1;
  EXPECT_NE(refusal(options).message().find("workers is -1"), std::string::npos);
  // Only the simulator walks keys outermost: such a plan can be made and looked at, not run here.
  options = {};
  options.schedule = Schedule::kv_outer;
  EXPECT_NE(refusal(options).message().find("plan.family is modelled"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
