// tests/cpu/tile_emulation_test.cpp: the matrix-tile kernels on tiles in plain C++, for machines
// without AMX: all but its instructions is tested here.
#include "backend/cpu/target_begin.h"

#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "cpu/cpu_run.h"
#include "reference/random.h"

HWY_BEFORE_NAMESPACE();
namespace tilewright::cpu::emulated_tiles {
inline constexpr Index kBlockRows = 32;
#include "backend/cpu/kernels-inl.h"

HWY_INLINE FloatVector dot_pairs(FloatVector, FloatVector, FloatVector sum) {
  return sum;  // products are the tiles' alone
}
HWY_INLINE void store_pairs(FloatVector p, std::uint16_t* to) {
  store_bf16(p, to);
}

#include "backend/cpu/bf16_arithmetic-inl.h"

#include "backend/cpu/tile_arithmetic-inl.h"

// Eight tiles of at most 16 rows of 16 units, and what AMX says of them.
struct EmulatedTiles {
  static void configure(Index upper, Index lower) {
    for (const int tile : {0, 1, 4}) rows[tile] = upper;
    for (const int tile : {2, 3, 5}) rows[tile] = lower;
    for (const int tile : {6, 7}) rows[tile] = 16;
  }
  template <int kTile>
  static void zero() {
    std::fill_n(data[kTile], 256, 0.0f);
  }
  template <int kTile>
  static void load(const float* from, Index stride) {
    EXPECT_GT(rows[kTile], 0) << "tile " << kTile << " is not configured";
    std::fill_n(data[kTile], 256, 0.0f);
    for (Index r = 0; r < rows[kTile]; ++r) {
      std::memcpy(data[kTile] + r * 16, from + r * stride, 64);
    }
  }
  template <int kTile>
  static void store(float* to, Index stride) {
    for (Index r = 0; r < rows[kTile]; ++r) std::memcpy(to + r * stride, data[kTile] + r * 16, 64);
  }
  template <int kSum, int kLeft, int kRight>
  static void dot() {
    EXPECT_EQ(rows[kSum], rows[kLeft]);
    const auto pair = [](float unit, int which) {
      const auto bits = std::bit_cast<std::uint32_t>(unit);
      return bf16_to_float(static_cast<std::uint16_t>(which == 0 ? bits : bits >> 16));
    };
    for (Index r = 0; r < rows[kSum]; ++r) {
      for (Index k = 0; k < 16; ++k) {
        for (Index c = 0; c < 16; ++c) {
          for (const int which : {0, 1}) {
            data[kSum][r * 16 + c] +=
                pair(data[kLeft][r * 16 + k], which) * pair(data[kRight][k * 16 + c], which);
          }
        }
      }
    }
  }
  static inline Index rows[8] = {};
  static inline float data[8][256] = {};
};

constinit const Kernels kKernels = make_kernels<TileBf16<EmulatedTiles>>();
}  // namespace tilewright::cpu::emulated_tiles
HWY_AFTER_NAMESPACE();

namespace tilewright::cpu_test {
namespace {

// What run_forward does, on one thread.
void run_here(reference::ProblemData& data, const How& how) {
  const cpu::Kernels& kernels = cpu::emulated_tiles::kKernels;
  const AttentionProblem& problem = data.problem();
  const AttentionTensors tensors = data.tensors();
  const Plan plan = make_plan(problem, how);
  const PoisonedWorkspace workspace(plan);
  const schedule::Index scratch_bytes = schedule::cpu_forward_scratch_bytes(
      how.tile.q_rows, how.tile.kv_rows, problem.spec().qk_dim, problem.spec().v_dim, 2);
  cpu::ForwardCall call{problem, tensors, how.tile};
  const bool standard = how.schedule == Schedule::standard;
  call.heads_per_tile = standard ? 1 : schedule::min(problem.group(), how.tile.q_rows);
  call.score_stride = schedule::cpu_standard_score_stride(problem.kv_len());
  call.scores = reinterpret_cast<float*>(workspace.data + scratch_bytes);
  call.row_ends = call.scores + problem.q_len() * call.score_stride;
  for (schedule::Index index = 0; index < call.tasks(); ++index) {
    const cpu::ForwardTask task = cpu::make_task(call, index, 0);
    if (task.rows() == 0) continue;
    if (standard) {
      kernels.scores(call, task, workspace.data);
      kernels.softmax(call, task);
      kernels.output(call, task, workspace.data);
    } else {
      kernels.forward(call, task, workspace.data);
    }
  }
}

TEST(TileKernels, are_right_on_emulated_tiles) {
  const auto sets = cpu::instruction_sets();
  if (std::find(sets.begin(), sets.end(), "avx512") == sets.end()) {
    GTEST_SKIP() << "AMX's kernels need AVX-512, which this CPU lacks";
  }
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    reference::RandomLimits limits;
    limits.max_flops = 2e6;
    reference::Case what = reference::random_case(seed, limits);
    what.spec.dtype = DType::bf16;
    if (what.spec.o_dtype != DType::f32) what.spec.o_dtype = DType::bf16;
    reference::Random random(seed);
    How how{"", {random.integer(9, 100), 16 * random.integer(1, 10)}};
    if (seed % 3 == 0) how.schedule = Schedule::standard;
    SCOPED_TRACE(reference::to_text(what) + ", tile " + std::to_string(how.tile.q_rows) + "x" +
                 std::to_string(how.tile.kv_rows) + " " + std::string(name(how.schedule)));
    auto data = reference::ProblemData::create(what);
    ASSERT_TRUE(data.ok()) << data.status().message();
    data->prepare_run();
    run_here(*data, how);
    EXPECT_EQ(data->violation(), std::nullopt);
    const auto rows = reference::sample_rows(data->problem(), data->tensors(), 200, seed);
    const auto result = reference::compare(data->problem(), data->tensors(), rows);
    ASSERT_TRUE(result.ok()) << reference::to_text(result, "emulated tiles", seed);
  }
}

}  // namespace
}  // namespace tilewright::cpu_test
