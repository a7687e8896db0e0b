// tests/cuda/gpu_long_context_test.cpp: very long sequences on a real GPU: right, in memory that
// does not grow with them.
#include <thread>

#include "cuda/gpu_fixture.h"
#include "reference/attention.h"
#include "reference/random.h"
#include "reference/tolerance.h"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kDim = 128;
constexpr std::size_t kMemoryLimitBytes = 64'000'000;
constexpr std::int64_t kSampledRows = 16;

class LongContext : public Gpu, public testing::WithParamInterface<std::int64_t> {
 protected:
  /// Normal, bf16; the same for the same seed, drawn by many threads.
  static std::vector<std::uint16_t> normal_bf16(std::int64_t tokens, std::uint64_t seed) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(tokens * kDim));
    constexpr int kParts = 16;
    const std::int64_t rows = (tokens + kParts - 1) / kParts;
    std::vector<std::thread> threads;
    for (std::int64_t part = 0; part < kParts; ++part) {
      threads.emplace_back([&values, tokens, rows, part, seed] {
        reference::Random random(seed * kParts + static_cast<std::uint64_t>(part));
        const std::int64_t end = std::min(tokens, (part + 1) * rows) * kDim;
        for (std::int64_t i = part * rows * kDim; i < end; ++i) {
          reference::store(values.data(), DType::bf16, i, static_cast<float>(random.normal()));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return values;
  }

  std::size_t free_bytes() {
    using Info = DriverResult (*)(std::size_t * free, std::size_t * total);
    static const auto info = reinterpret_cast<Info>(driver_symbol("cuMemGetInfo"));
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_TRUE(info != nullptr && info(&free, &total) == DriverResult::success);
    return free;
  }
};

TEST_P(LongContext, CausalRowsAreRightAndMemoryStaysFlat) {
  const std::int64_t tokens = GetParam();
  AttentionSpec spec;
  spec.qk_dim = kDim;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = tokens;
  spec.mask.causal = true;
  const Plan plan = plan_of(spec);
  const std::vector<std::uint16_t> q = normal_bf16(tokens, 1);
  const std::vector<std::uint16_t> k = normal_bf16(tokens, 2);
  const std::vector<std::uint16_t> v = normal_bf16(tokens, 3);
  AttentionTensors tensors;
  tensors.q = to_device(q);
  tensors.k = to_device(k);
  tensors.v = to_device(v);
  tensors.o = allocate(q.size() * 2);
  tensors.lse = static_cast<float*>(allocate(static_cast<std::size_t>(tokens) * 4));
  fill(tensors.o, 0xff, q.size() * 2);
  fill(tensors.lse, 0xff, static_cast<std::size_t>(tokens) * 4);
  ASSERT_TRUE(session_->synchronize().ok());

  const std::size_t before = free_bytes();
  const RunOptions options = options_for(plan);
  ASSERT_TRUE(prepare(plan).ok());
  Result<float> milliseconds = session_->time_ms([&] { return run(plan, tensors, options); });
  ASSERT_TRUE(milliseconds.ok()) << milliseconds.status().message();
  const std::size_t after = free_bytes();
  const std::size_t grown = before > after ? before - after : 0;
  milliseconds = session_->time_ms([&] { return run(plan, tensors, options); });
  ASSERT_TRUE(milliseconds.ok()) << milliseconds.status().message();

  std::vector<std::uint16_t> o = to_host(static_cast<const std::uint16_t*>(tensors.o), q.size());
  std::vector<float> lse = to_host(tensors.lse, static_cast<std::size_t>(tokens));
  AttentionTensors host;
  host.q = q.data();
  host.k = k.data();
  host.v = v.data();
  host.o = o.data();
  host.lse = lse.data();
  const auto rows = reference::sample_rows(plan.problem, host, kSampledRows, 7);
  const reference::Comparison comparison = reference::compare(plan.problem, host, rows);
  EXPECT_TRUE(comparison.ok()) << to_text(comparison, to_text(plan), 7);
  EXPECT_GE(comparison.rows, kSampledRows / 2);
  for (const float value : lse) ASSERT_TRUE(std::isfinite(value)) << "a row was left out";
  EXPECT_LT(workspace_bytes(plan), kMemoryLimitBytes);
  EXPECT_LT(grown, kMemoryLimitBytes);

  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(tokens) * kDim;
  RecordProperty("memory_bytes_beyond_inputs_and_outputs", std::to_string(grown));
  RecordProperty("workspace_bytes", std::to_string(workspace_bytes(plan)));
  RecordProperty("milliseconds", std::to_string(*milliseconds));
  RecordProperty("tflops", std::to_string(flops / *milliseconds / 1e9));
  RecordProperty("sampled_rows", static_cast<int>(comparison.rows));
  RecordProperty("max_o_error", std::to_string(comparison.max_o_error));
  RecordProperty("worst_share_of_tolerance", std::to_string(comparison.worst.ratio()));
}

INSTANTIATE_TEST_SUITE_P(Tokens, LongContext, testing::Values(131072, 1048576));

}  // namespace
}  // namespace tilewright::cuda
