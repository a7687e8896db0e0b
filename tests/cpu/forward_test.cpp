// tests/cpu/forward_test.cpp: every instruction set of this CPU, by force, on random problems.
#include <array>

#include "cpu/cpu_run.h"
#include "reference/random.h"

namespace tilewright::cpu_test {
namespace {

class Forward : public testing::TestWithParam<std::string> {};

TEST_P(Forward, random_problems_are_right_with_any_tile) {
  const std::uint64_t base =
      static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed());
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t seed = base * 1000 + i;
    reference::RandomLimits limits;
    limits.max_flops = 2e7;
    reference::Random random(seed);
    How how{GetParam(), {random.integer(1, 70), 16 * random.integer(1, 10)}};
    if (random.chance(0.3)) {
      how.schedule = Schedule::standard;
    } else if (random.chance(0.4)) {
      how.splits = random.integer(2, 5);
    }
    expect_right(reference::random_case(seed, limits), how);
    if (HasFailure()) {
      FAIL() << "seed " << seed;
    }
  }
}

TEST_P(Forward, lengths_around_tile_edges_are_right) {
  for (const std::int64_t tokens : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129}) {
    for (const bool causal : {false, true}) {
      reference::Case what;
      what.spec.q_lengths.max_tokens = tokens;
      what.spec.kv_lengths.max_tokens = 64;
      what.spec.heads = 2;
      what.spec.kv_heads = 1;
      what.spec.qk_dim = 40;
      what.spec.v_dim = 72;
      what.spec.mask.causal = causal;
      what.seed = static_cast<std::uint64_t>(tokens);
      expect_right(what, {GetParam(), {48, 32}});
      std::swap(what.spec.q_lengths, what.spec.kv_lengths);
      expect_right(what, {GetParam(), {48, 32}});
    }
  }
}

TEST_P(Forward, few_queries_stream_any_number_of_keys) {
  reference::Random random(77);
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 13, 16, 17}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      reference::Case what;
      what.spec.dtype = dtype;
      what.spec.q_lengths.max_tokens = rows;
      what.spec.kv_lengths.max_tokens = random.integer(1, 300);
      what.spec.heads = what.spec.kv_heads = random.choose({3, 12});
      what.spec.qk_dim = random.choose({16, 64, 96, 128, 80, 256});
      what.spec.v_dim = random.choose({16, 64, 144, 128, 256});
      what.spec.mask.causal = random.chance(0.5);
      what.spec.mask.window_left = random.chance(0.3) ? 40 : -1;
      what.seed = random.bits();
      // Heads share tasks: with one worker, as many as there is room for.
      for (const std::int64_t workers : {1, 2}) {
        expect_right(what,
                     {GetParam(), {16, 48}, random.integer(1, 3), Schedule::q_outer, workers});
      }
      // Several query heads of one kv head share its rows.
      what.spec.kv_heads = 1;
      expect_right(what, {GetParam(), {16, 48}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Forward, testing::ValuesIn(cpu::instruction_sets()),
                         [](const auto& param_info) { return param_info.param; });

}  // namespace
}  // namespace tilewright::cpu_test
