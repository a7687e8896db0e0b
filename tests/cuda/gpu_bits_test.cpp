// tests/cuda/gpu_bits_test.cpp: the same bits on a real GPU: on every run, and whether P reaches
// the tensor cores from registers or from shared memory.
//
// A compiler that reuses the registers of P while the tensor cores still read them (seen in those
// before 13.3) gives results that are wrong now and then, and by little. P in shared memory cannot
// suffer from that.
#include "backend/cuda/nvrtc.h"
#include "cuda/gpu_fixture.h"
#include "plan/hopper_forward.h"

namespace tilewright::cuda {
namespace {

struct Dims {
  std::int64_t qk;
  std::int64_t v;
};
// Each a test of its own, since each compiles kernels.
constexpr Dims kNativeDims[] = {{64, 64}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}};

/// Inputs of one problem, and the bits of its fp32 output and LSE under any plan for it.
class GpuBits : public Gpu, public testing::WithParamInterface<Dims> {
 protected:
  static AttentionSpec spec_of(const Dims& dims, DType dtype, bool causal) {
    AttentionSpec spec;
    spec.dtype = dtype;
    spec.o_dtype = DType::f32;
    spec.heads = 8;
    spec.kv_heads = 4;
    spec.qk_dim = dims.qk;
    spec.v_dim = dims.v;
    spec.q_lengths.max_tokens = kTokens;
    spec.kv_lengths.max_tokens = kTokens;
    spec.mask.causal = causal;
    return spec;
  }

  void make_inputs(const AttentionSpec& spec) {
    const auto elements = [&](std::int64_t heads, std::int64_t dim) {
      return static_cast<std::size_t>(kTokens * heads * dim);
    };
    const auto random = [&](std::size_t count, std::uint32_t seed) {
      std::vector<std::uint16_t> values = random_bf16(count, seed);
      if (spec.dtype == DType::bf16) return values;
      for (std::size_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const float value = reference::load(values.data(), DType::bf16, at);
        reference::store(values.data(), DType::f16, at, value);
      }
      return values;
    };
    tensors_.q = to_device(random(elements(spec.heads, spec.qk_dim), 1));
    tensors_.k = to_device(random(elements(spec.kv_heads, spec.qk_dim), 2));
    tensors_.v = to_device(random(elements(spec.kv_heads, spec.v_dim), 3));
    o_count_ = elements(spec.heads, spec.v_dim);
    lse_count_ = elements(spec.heads, 1);
    tensors_.o = allocate(o_count_ * 4);
    tensors_.lse = static_cast<float*>(allocate(lse_count_ * 4));
  }

  std::vector<std::uint32_t> bits(const Plan& plan, const RunOptions& options) {
    fill(tensors_.o, 0xff, o_count_ * 4);
    fill(tensors_.lse, 0xff, lse_count_ * 4);
    const Status status = run(plan, tensors_, options);
    EXPECT_TRUE(status.ok()) << status.message();
    auto all = to_host(static_cast<const std::uint32_t*>(tensors_.o), o_count_);
    const auto lse = to_host(reinterpret_cast<const std::uint32_t*>(tensors_.lse), lse_count_);
    all.insert(all.end(), lse.begin(), lse.end());
    return all;
  }

  static constexpr std::int64_t kTokens = 1111;
  AttentionTensors tensors_;
  std::size_t o_count_ = 0;
  std::size_t lse_count_ = 0;
};

TEST_P(GpuBits, OfPInRegistersAndInSharedMemoryAreEqual) {
  if (!nvrtc().ok()) GTEST_SKIP() << nvrtc().status().message();
  constexpr int kSharedBytes = 232448;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    if (dtype == DType::f16 && GetParam().qk != 128) continue;
    for (const bool causal : {false, true}) {
      const AttentionSpec spec = spec_of(GetParam(), dtype, causal);
      make_inputs(spec);
      // The planner's tile, or the widest below it that leaves room for P.
      Plan shared = plan_of(spec);
      std::get<ForwardPlan>(shared.kernel).p_in_shared = true;
      while (
          !schedule::legal(hopper_specialisation(shared.problem, shared.forward()), kSharedBytes)) {
        std::get<ForwardPlan>(shared.kernel).tile.kv_rows -= 16;
      }
      PlanOptions options;
      options.tile = shared.forward().tile;
      const Plan registers = plan_of(spec, options);
      const RunOptions run_options = options_for(registers);
      SCOPED_TRACE(to_text(registers));
      const auto want = bits(shared, run_options);
      EXPECT_NE(want.front(), 0xffffffffu);
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(want == bits(registers, run_options)) << "run " << i;
      }
      // That another order of sums, and so any other operand, would show.
      if (GetParam().qk == 128) {
        options.tile->kv_rows = 64;
        EXPECT_FALSE(want == bits(plan_of(spec, options), run_options));
      }
    }
  }
}

TEST_P(GpuBits, OfHeadsThatShareATileAndOfHeadsApartAreEqual) {
  if (!nvrtc().ok()) GTEST_SKIP() << nvrtc().status().message();
  for (const std::int64_t queries : {1, 3, 40}) {
    AttentionSpec spec = spec_of(GetParam(), DType::bf16, true);
    spec.q_lengths.max_tokens = queries;
    make_inputs(spec);
    PlanOptions options;
    options.tile = plan_of(spec).forward().tile;
    options.tile->q_rows = 64;
    const Plan packed = plan_of(spec, options);
    EXPECT_EQ(packed.forward().packed_heads, 2);
    options.tile->q_rows = 128;
    const Plan apart = plan_of(spec, options);
    EXPECT_EQ(apart.forward().packed_heads, 1);
    SCOPED_TRACE(to_text(packed));
    const RunOptions run_options = options_for(packed);
    const auto want = bits(packed, run_options);
    EXPECT_NE(want.front(), 0xffffffffu);
    EXPECT_TRUE(want == bits(apart, run_options));
  }
}

TEST_P(GpuBits, Case13_OfThirtyRunsAreEqual) {
  for (const std::int64_t splits : {1, 3}) {
    const AttentionSpec spec = spec_of(GetParam(), DType::bf16, true);
    make_inputs(spec);
    PlanOptions options;
    options.kv_splits = splits;
    const Plan plan = plan_of(spec, options);
    const RunOptions run_options = options_for(plan);
    SCOPED_TRACE(to_text(plan));
    const auto want = bits(plan, run_options);
    for (int i = 1; i < 30; ++i) ASSERT_TRUE(want == bits(plan, run_options)) << "run " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, GpuBits, testing::ValuesIn(kNativeDims),
                         [](const testing::TestParamInfo<Dims>& dims) {
                           return std::to_string(dims.param.qk) + "_" +
                                  std::to_string(dims.param.v);
                         });

}  // namespace
}  // namespace tilewright::cuda
