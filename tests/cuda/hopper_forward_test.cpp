// tests/cuda/hopper_forward_test.cpp: how a plan becomes a launch, on a driver without a GPU.
#include "backend/cuda/hopper_forward.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cuda/attention_combine.h"
#include "backend/cuda/pack_builder.h"
#include "backend/cuda/packed_kernels.h"
#include "plan/copy_engine.h"
#include "plan/hopper_forward.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_nvrtc.h"

namespace tilewright::cuda {
namespace {

using schedule::HopperForwardSpecialisation;

AttentionSpec some_spec() {
  AttentionSpec spec;
  spec.batch = 2;
  spec.heads = 8;
  spec.kv_heads = 2;
  spec.q_lengths.max_tokens = 1000;
  spec.kv_lengths.max_tokens = 3000;
  spec.qk_dim = 128;
  spec.dtype = DType::bf16;
  spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
  return spec;
}

void packed(Lengths& lengths, std::int64_t total_tokens) {
  lengths = {LengthKind::cumulative, 1000, total_tokens, MemorySpace::device};
}

Plan plan_of(const AttentionSpec& spec, std::int64_t kv_splits = 1) {
  const Result<AttentionProblem> problem = AttentionProblem::create(spec);
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  Plan plan(*problem);
  plan.family = KernelFamily::hopper_forward;
  ForwardPlan forward;
  forward.tile = {128, 128};
  forward.stages = 2;
  forward.workers = 132;
  forward.kv_splits = kv_splits;
  plan.kernel = forward;
  plan.workspace_bytes = hopper_workspace(*problem, kv_splits).total_bytes;
  return plan;
}

class HopperForward : public testing::Test {
 protected:
  HopperForward()
      : driver_(fake_driver_api()),
        cache_({fake_driver_api(), [] { return open_fake_nvrtc(); },
                Status{StatusCode::unavailable, "no pack"}, DiskCache({}), embedded_files(),
                "digest"}) {
    fake_driver().reset();
    fake_nvrtc().reset();
    fake_nvrtc().cubin = fake_cubin("hopper_forward", 168, 0, 0);
    tensors_.q = tensors_.k = tensors_.v = tensors_.o = memory_;
    options_.workspace = {memory_, sizeof memory_};
    options_.stream = reinterpret_cast<void*>(0x77);
  }

  Runtime runtime() { return {driver_, cache_}; }
  Status run(const AttentionSpec& spec) {
    return run_hopper_forward(runtime(), plan_of(spec), tensors_, options_);
  }
  kernels::HopperForwardParams params(const AttentionSpec& spec) {
    Result<kernels::HopperForwardParams> params =
        hopper_forward_params(driver_, plan_of(spec), tensors_, memory_);
    EXPECT_TRUE(params.ok()) << params.status().message();
    return *params;
  }

  alignas(64) static inline char memory_[4096];
  DriverApi driver_;
  KernelCache cache_;
  AttentionTensors tensors_;
  RunOptions options_;
};

TEST_F(HopperForward, LaunchesThePlannedBlocksOnTheCallersStream) {
  ASSERT_TRUE(run(some_spec()).ok());
  ASSERT_EQ(fake_driver().launches.size(), 1u);
  const FakeDriver::Launch& launch = fake_driver().launches[0];
  EXPECT_EQ(launch.stream, options_.stream);
  EXPECT_EQ(launch.grid[0], 128u)
      << "8 tiles of 128 rows, 8 heads, 2 batches: fewer than 132 units";
  EXPECT_EQ(launch.block[0], 384u);
  const HopperForwardSpecialisation s =
      hopper_specialisation(plan_of(some_spec()).problem, plan_of(some_spec()).forward());
  EXPECT_EQ(static_cast<int>(launch.dynamic_shared_bytes), schedule::footprint(s).total_bytes());
  EXPECT_EQ(fake_driver().granted_shared_bytes.at(launch.function),
            schedule::footprint(s).total_bytes());
  AttentionSpec larger = some_spec();
  larger.batch = 20;
  ASSERT_TRUE(run(larger).ok());
  EXPECT_EQ(fake_driver().launches[1].grid[0], 132u);
}

TEST_F(HopperForward, Case08_LaunchErrorsAreReportedWithTheLaunch) {
  fake_driver().launch_result = static_cast<DriverResult>(701);
  const Status status = run(some_spec());
  EXPECT_FALSE(status.ok());
  for (const char* part : {"launching hopper_forward", "384 threads", "701"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST_F(HopperForward, Case08_MillionsOfHeadsAndBatchesFit) {
  AttentionSpec spec = some_spec();
  spec.batch = 1'000'000;
  spec.q_lengths.max_tokens = 1;
  spec.q.strides = Strides{0, 8, 16, 1};  // Not one buffer of that size.
  spec.k.strides = spec.v.strides = Strides{0, 256, 128, 1};
  ASSERT_TRUE(run(spec).ok());
  EXPECT_EQ(fake_driver().launches[0].grid[0], 132u);
  spec.batch = 1'000'000'000;
  const Status status = run(spec);
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_NE(status.message().find("8000000000"), std::string::npos) << status.message();
}

TEST_F(HopperForward, Case04_NothingToDoLaunchesNothing) {
  for (const auto change : {+[](AttentionSpec& s) { s.batch = 0; },
                            +[](AttentionSpec& s) { s.q_lengths.max_tokens = 0; }}) {
    AttentionSpec spec = some_spec();
    change(spec);
    EXPECT_TRUE(run(spec).ok());
  }
  EXPECT_TRUE(fake_driver().launches.empty());
  AttentionSpec no_keys = some_spec();
  no_keys.kv_lengths.max_tokens = 0;
  tensors_.k = tensors_.v = nullptr;
  EXPECT_TRUE(run(no_keys).ok()) << "O must still become zero";
  EXPECT_EQ(fake_driver().launches.size(), 1u);
}

TEST_F(HopperForward, Case16_CaptureOfAnUnpreparedPlanIsRefusedAndOfAPreparedOneLaunches) {
  fake_driver().capture = CaptureStatus::active;
  EXPECT_EQ(run(some_spec()).code(), StatusCode::not_prepared);
  fake_driver().capture = CaptureStatus::none;
  ASSERT_TRUE(prepare_hopper_forward(runtime(), plan_of(some_spec())).ok());
  fake_driver().capture = CaptureStatus::active;
  EXPECT_TRUE(run(some_spec()).ok());
  EXPECT_EQ(fake_driver().launches.size(), 1u);
}

TEST_F(HopperForward, WorkspaceIsAskedForByItsSize) {
  options_.workspace = {};
  const Status status = run(some_spec());
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_NE(status.message().find("256 bytes"), std::string::npos) << status.message();
}

TEST_F(HopperForward, RefusesByNameWhatTheFamilyDoesNotTake) {
  struct Refusal {
    const char* field;
    void (*change)(AttentionSpec&);
  };
  for (const Refusal& refusal :
       {Refusal{"dtype is f32", [](AttentionSpec& s) { s.dtype = DType::f32; }},
        Refusal{"bias", [](AttentionSpec& s) { s.bias.kind = BiasKind::boolean; }},
        Refusal{"q_lengths.space is host",
                [](AttentionSpec& s) { s.q_lengths.kind = LengthKind::per_sequence; }},
        Refusal{"kv_lengths.space is host",
                [](AttentionSpec& s) { s.kv_lengths.kind = LengthKind::per_sequence; }},
        Refusal{"q_len is 268435456; accepted by hopper_forward: up to 268435455",
                [](AttentionSpec& s) { s.q_lengths.max_tokens = 1 << 28; }},
        Refusal{"kv_len is 268435456; accepted by hopper_forward: up to 268435455",
                [](AttentionSpec& s) { s.kv_lengths.max_tokens = 1 << 28; }},
        Refusal{
            "q_lengths.total_tokens is 2147482624; accepted by hopper_forward: up to 2147482623",
            [](AttentionSpec& s) { packed(s.q_lengths, 2147482624); }},
        Refusal{"kv_lengths.total_tokens is 2147483647",
                [](AttentionSpec& s) { packed(s.kv_lengths, 2147483647); }},
        Refusal{"batch is 2147483648", [](AttentionSpec& s) {
                  s.batch = std::int64_t{1} << 31;
                  s.q.strides = s.k.strides = s.v.strides = s.o.strides = Strides{1, 1, 1, 1};
                }}}) {
    AttentionSpec spec = some_spec();
    refusal.change(spec);
    const Status status = run(spec);
    EXPECT_EQ(status.code(), StatusCode::unsupported) << refusal.field;
    EXPECT_NE(status.message().find(refusal.field), std::string::npos) << status.message();
  }
}

TEST_F(HopperForward, ParametersCarryStridesLengthsAndMask) {
  AttentionSpec spec = some_spec();
  spec.q_lengths.kind = spec.kv_lengths.kind = LengthKind::cumulative;
  spec.q_lengths.space = spec.kv_lengths.space = MemorySpace::device;
  spec.q_lengths.total_tokens = 1500;
  spec.kv_lengths.total_tokens = 5000;
  spec.mask = {true, Diagonal::top_left, 77, 5};
  spec.sinks = PerHead::per_head;
  spec.alibi = PerHead::per_batch_head;
  spec.scale = -2;
  const kernels::HopperForwardParams p = params(spec);
  EXPECT_EQ(p.q.batch_stride, 0) << "packed";
  EXPECT_EQ(p.q.row_stride, 1024);
  EXPECT_EQ(p.k.row_stride, 256);
  EXPECT_EQ(p.lse_batch_stride, 0);
  EXPECT_EQ(p.lse_head_stride, 1500);
  EXPECT_EQ(p.q_lengths.kind, kernels::LengthKind::cumulative);
  EXPECT_EQ(p.q_lengths.bound, 1000);
  EXPECT_EQ(p.q_lengths.total_rows, 1500);
  EXPECT_EQ(p.kv_lengths.total_rows, 5000);
  EXPECT_EQ(p.window_left, 77);
  EXPECT_EQ(p.window_right, 0) << "causal";
  EXPECT_EQ(p.bottom_right, 0);
  EXPECT_EQ(p.heads_per_kv_head, 4);
  EXPECT_EQ(p.sinks.batch_stride, 0);
  EXPECT_EQ(p.alibi_slopes.batch_stride, 8);
  EXPECT_EQ(p.scale, -2);
  EXPECT_EQ(p.control, static_cast<void*>(memory_));

  const kernels::HopperForwardParams padded = params(some_spec());
  EXPECT_EQ(padded.q.batch_stride, 1000 * 1024);
  EXPECT_EQ(padded.lse_batch_stride, 8000);
  EXPECT_EQ(padded.lse_head_stride, 1000);
  EXPECT_EQ(padded.window_left, -1);
  EXPECT_EQ(padded.window_right, -1);
}

TEST_F(HopperForward, TensorMapsDescribeTheProblemsOwnExtents) {
  AttentionSpec spec = some_spec();
  spec.qk_dim = 120;
  spec.v_dim = 104;
  const kernels::HopperForwardParams p = params(spec);
  const auto expect = [](const kernels::TensorMap& map, std::initializer_list<unsigned> extents,
                         int rows_axis, unsigned box_rows) {
    int at = 0;
    for (const unsigned extent : extents) EXPECT_EQ(map.words[at++], extent);
    EXPECT_EQ(map.words[10], 64u);
    EXPECT_EQ(map.words[10 + rows_axis], box_rows);
  };
  expect(p.q_map, {120, 1000, 8, 2}, 1, 64);
  expect(p.k_map, {120, 3000, 2, 2}, 1, 128);
  expect(p.v_map, {104, 3000, 2, 2}, 1, 128);
}

TEST_F(HopperForward, HeadsOfAPackShareQueryTiles) {
  AttentionSpec spec = some_spec();
  spec.q_lengths.max_tokens = 5;
  Plan plan = plan_of(spec);
  EXPECT_EQ(hopper_tiles(plan.problem, plan.forward()), 16) << "a tile for each of 2 x 8 heads";
  ForwardPlan& forward = std::get<ForwardPlan>(plan.kernel);
  forward.tile.q_rows = 64;
  forward.packed_heads = 4;
  EXPECT_EQ(hopper_tile_tokens(forward), 16);
  EXPECT_EQ(hopper_tiles(plan.problem, forward), 4) << "of 4 heads x 16 tokens";
  const auto p = hopper_forward_params(driver_, plan, tensors_, memory_);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->pack.heads, 4);
  EXPECT_EQ(p->pack.tokens, 16);
  const unsigned extents[] = {128, 4, 5, 2, 2};
  for (int axis = 0; axis < 5; ++axis) EXPECT_EQ(p->q_map.words[axis], extents[axis]);
  EXPECT_EQ(p->q_map.words[11], 4u) << "of the box: heads";
  EXPECT_EQ(p->q_map.words[12], 16u) << "tokens";
}

TEST_F(HopperForward, PacksAreOfGroupsThatKernelsCanShare) {
  const auto packed = [](auto change) {
    AttentionSpec spec = some_spec();
    change(spec);
    return hopper_packed_heads(*AttentionProblem::create(spec));
  };
  EXPECT_EQ(packed([](AttentionSpec&) {}), 4);
  EXPECT_EQ(packed([](AttentionSpec& s) { s.heads = 14; }), 7);
  EXPECT_EQ(packed([](AttentionSpec& s) { s.heads = 256; }), 64) << "a consumer's rows";
  EXPECT_EQ(packed([](AttentionSpec& s) { s.heads = 192; }), 48) << "half of 96";
  EXPECT_EQ(packed([](AttentionSpec& s) { s.heads = 134; }), 1) << "67 have no parts";
  EXPECT_EQ(packed([](AttentionSpec& s) { s.alibi = PerHead::per_head; }), 1);
  EXPECT_EQ(packed([](AttentionSpec& s) { s.q.alignment_bytes = 2; }), 1);
}

TEST(HeadPack, RowsAreTokensTimesHeads) {
  for (int heads = 1; heads <= schedule::kRowsPerConsumer; ++heads) {
    const schedule::HeadPack pack = schedule::head_pack(heads);
    ASSERT_GE(pack.tokens, 1);
    for (int row = 0; row < schedule::kRowsPerConsumer; ++row) {
      ASSERT_EQ(pack.token(row), row / heads);
      ASSERT_EQ(pack.head(row), row % heads);
    }
  }
}

TEST_F(HopperForward, Case09_WhatTheCopyEngineCannotReadIsCopiedByThreads) {
  AttentionSpec spec = some_spec();
  EXPECT_FALSE(hopper_specialisation(plan_of(spec).problem, plan_of(spec).forward()).copy_producer);
  spec.v.strides = Strides{0, 256, 128, 1};  // one V for every batch
  EXPECT_TRUE(hopper_specialisation(plan_of(spec).problem, plan_of(spec).forward()).copy_producer);
  const kernels::HopperForwardParams p = params(spec);
  EXPECT_EQ(p.v.batch_stride, 0);
  EXPECT_EQ(p.q_map.words[0], 0u) << "no map is made for a kernel that reads none";
}

TEST_F(HopperForward, Case11_EveryHeadDimHasAKernelOfAShippedPair) {
  for (int qk_dim = 1; qk_dim <= 256; ++qk_dim) {
    for (int v_dim = 1; v_dim <= 256; ++v_dim) {
      const HopperDims dims = hopper_dims(qk_dim, v_dim);
      ASSERT_GE(dims.qk_dim, qk_dim);
      ASSERT_GE(dims.v_dim, v_dim);
      ASSERT_TRUE(dims.qk_dim == dims.v_dim || (dims.qk_dim == 192 && dims.v_dim == 128))
          << qk_dim << " " << v_dim;
    }
  }
}

TEST_F(HopperForward, HeadsSideBySideFillTheMultiprocessorsAndStayInTheCache) {
  AttentionSpec spec = some_spec();
  spec.heads = 64;
  spec.kv_heads = 16;  // 32 in both batches
  spec.kv_lengths.max_tokens = 1000;
  spec.q_lengths.max_tokens = 1024;  // 1024 query tiles: two for each of 132 multiprocessors
  EXPECT_EQ(params(spec).head_groups, 4);
  spec.q_lengths.max_tokens = 512;  // 512, four a head: one each
  EXPECT_EQ(params(spec).head_groups, 4);
  spec.q_lengths.max_tokens = 128;
  EXPECT_EQ(params(spec).head_groups, 1);
  spec.kv_lengths.max_tokens = 16384;  // 8 MiB a KV head
  EXPECT_EQ(params(spec).head_groups, 8) << "of 32 MiB";
  spec.kv_lengths.max_tokens = 1 << 20;
  EXPECT_EQ(params(spec).head_groups, 32) << "no more than there are KV heads";
  spec.q_lengths.kind = LengthKind::per_sequence;
  EXPECT_EQ(params(spec).head_groups, 16) << "of a batch";
  spec.kv_lengths.max_tokens = 0;
  EXPECT_EQ(params(spec).head_groups, 1);
}

TEST_F(HopperForward, SplitsNeedFp32PartialResultsInTheWorkspace) {
  const Plan plan = plan_of(some_spec(), 3);
  EXPECT_TRUE(hopper_specialisation(plan.problem, plan.forward()).f32_output);
  const HopperWorkspace workspace = hopper_workspace(plan.problem, 3);
  const std::int64_t rows = 2 * 8 * 1000;
  EXPECT_EQ(workspace.partial_o_offset, 256);
  EXPECT_EQ(workspace.partial_lse_offset, 256 + 3 * rows * 128 * 4);
  EXPECT_EQ(workspace.total_bytes, workspace.partial_lse_offset + 3 * rows * 4);
  EXPECT_EQ(hopper_workspace(plan.problem, 1).total_bytes, 256)
      << "nothing that grows with the problem";
}

TEST_F(HopperForward, SplitPlansLaunchTheMergeAfterTheParts) {
  AttentionSpec spec = some_spec();
  spec.sinks = PerHead::per_head;
  Plan plan = plan_of(spec, 3);
  fake_nvrtc().cubin = fake_cubin("hopper_forward", 168, 0, 0);
  // The fake compiler gives one kernel at a time.
  ASSERT_TRUE(
      cache_.get(hopper_forward_source(hopper_specialisation(plan.problem, plan.forward())), false)
          .ok());
  fake_nvrtc().cubin = fake_cubin("attention_combine", 32, 0, 0);
  const Status status = run_hopper_forward(runtime(), plan, tensors_, options_);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(fake_driver().launches.size(), 2u);
  EXPECT_EQ(fake_driver().launches[0].grid[0], 132u);
  EXPECT_EQ(fake_driver().launches[1].block[0], 256u);
  EXPECT_EQ(fake_driver().launches[1].grid[0], 2000u) << "a warp for each of 16000 rows";
  EXPECT_FALSE(fake_driver().launches[0].overlaps) << "it may overwrite what the last merge reads";
  EXPECT_TRUE(fake_driver().launches[1].overlaps);
  fake_driver().capture = CaptureStatus::active;
  ASSERT_TRUE(run_hopper_forward(runtime(), plan, tensors_, options_).ok());
  EXPECT_TRUE(fake_driver().launches[3].overlaps);
  fake_driver().version = 12020;
  ASSERT_TRUE(run_hopper_forward(runtime(), plan, tensors_, options_).ok());
  EXPECT_FALSE(fake_driver().launches[5].overlaps) << "graphs of that driver cannot hold it";

  const auto parts = hopper_forward_params(driver_, plan, tensors_, memory_);
  ASSERT_TRUE(parts.ok());
  const HopperWorkspace workspace = hopper_workspace(plan.problem, 3);
  EXPECT_EQ(parts->sinks.data, nullptr) << "the sink joins once, in the merge";
  EXPECT_EQ(static_cast<char*>(parts->o.data) - memory_, workspace.partial_o_offset);
  EXPECT_EQ(reinterpret_cast<char*>(parts->lse) - memory_, workspace.partial_lse_offset);
  EXPECT_EQ(parts->o_split_stride, 16000 * 128);
  EXPECT_EQ(parts->lse_split_stride, 16000);
  tensors_.sinks = reinterpret_cast<const float*>(memory_);
  const kernels::AttentionCombineParams merge = attention_combine_params(plan, tensors_, memory_);
  EXPECT_EQ(merge.sinks.data, tensors_.sinks);
  EXPECT_EQ(merge.partial_o.data, parts->o.data);
  EXPECT_EQ(merge.partial_lse, parts->lse);
  EXPECT_EQ(merge.partial_o_split_stride, parts->o_split_stride);
  EXPECT_EQ(merge.o.data, tensors_.o);
  EXPECT_EQ(merge.element, kernels::CombinedElement::bf16);
}

TEST(PackedKernels, AreEachLegalAndTradeNoMoreRegistersThanABlockHas) {
  const auto packed = packed_specialisations();
  EXPECT_GT(packed.size(), 50u);
  for (const HopperForwardSpecialisation& s : packed) {
    const KernelSource source = hopper_forward_source(s);
    EXPECT_TRUE(schedule::legal(s, 232448)) << source.name;
    const int traded = schedule::kWarpgroupThreads *
                       (schedule::consumer_warpgroups(s) * schedule::consumer_register_limit(s) +
                        schedule::producer_register_limit(s));
    EXPECT_LE(traded, source.planned_registers * source.threads) << source.name;
    EXPECT_LE(source.planned_registers * source.threads, 65536) << source.name;
  }
}

TEST(PackedKernels, DisagreementWithThePlanIsAFault) {
  const KernelSource source = hopper_forward_source(packed_specialisations()[0]);
  CubinFacts facts;
  facts.register_count = source.planned_registers;
  facts.matrix_instructions = source.planned_matrix_instructions;
  EXPECT_TRUE(plan_faults(source, facts).empty());
  facts.register_count -= 8;
  facts.static_shared_bytes = 16;
  facts.matrix_instructions = 0;
  EXPECT_EQ(plan_faults(source, facts).size(), 3u);
}

TEST(HopperForwardSource, NamesEveryFieldAndWritesThemInOrder) {
  HopperForwardSpecialisation s;
  s.element = schedule::HopperElement::f16;
  s.qk_dim = 192;
  s.softcap = true;
  const KernelSource source = hopper_forward_source(s);
  EXPECT_EQ(source.generated_text, "1, 192, 128, 128, 128, 2, 0, 1, 0, 0, 0, 0\n");
  EXPECT_NE(source.name.find("qk_dim=192"), std::string::npos);
  EXPECT_EQ(source.threads, 384);
  s.alibi = true;
  EXPECT_NE(hopper_forward_source(s).key(), source.key());
}

}  // namespace
}  // namespace tilewright::cuda
