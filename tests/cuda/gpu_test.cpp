// tests/cuda/gpu_test.cpp: the CUDA runtime on a real GPU: the pack, graph capture, large tensors,
// asynchrony.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "backend/cuda/hopper_forward.h"
#include "backend/cuda/locations.h"
#include "backend/cuda/packed_kernels.h"
#include "cuda/gpu_fixture.h"
#include "cuda/scratch_folder.h"
#include "tilewright/tilewright.h"

namespace tilewright::cuda {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(Gpu, IsDescribedByItsDriver) {
  const Result<Machine> machine = this_gpu();
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->kind, MachineKind::gpu);
  EXPECT_TRUE(machine->arch.starts_with("sm_90"));
  EXPECT_GE(machine->units, 100);
  ASSERT_NE(machine->store("shared memory"), nullptr);
  EXPECT_EQ(machine->store("shared memory")->capacity_bytes.value, 232448);
  EXPECT_EQ(machine->registers_bytes_per_unit.value, 262144);
  EXPECT_GT(machine->memory_bytes_per_second.value, 1e12);
  int version = 0;
  ASSERT_EQ(api().driver_get_version(&version), DriverResult::success);
  RecordProperty("device", machine->name);
  RecordProperty("profile", machine->id);
  RecordProperty("multiprocessors", static_cast<int>(machine->units));
  RecordProperty("l2_bytes", std::to_string(static_cast<long long>(machine->cache_bytes.value)));
  RecordProperty("driver_cuda_version", version_text(version));
}

TEST_F(Gpu, EveryPackedKernelLoadsAndUsesWhatWasPlanned) {
  KernelCache& cache = kernel_cache(api());
  ASSERT_TRUE(cache.pack().ok()) << cache.pack().status().message();
  RecordProperty("pack_compiler", cache.pack()->header().compiler_version);
  RecordProperty("pack_kernels", static_cast<int>(cache.pack()->entries().size()));
  for (const schedule::HopperForwardSpecialisation& s : packed_specialisations()) {
    const KernelSource source = hopper_forward_source(s);
    const Result<LoadedKernel> kernel = cache.get(source, false);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_EQ(kernel->origin, KernelOrigin::pack) << source.name;
    const auto attribute = [&](FunctionAttribute which) {
      int value = -1;
      EXPECT_EQ(api().function_get_attribute(&value, which, kernel->function),
                DriverResult::success);
      return value;
    };
    EXPECT_EQ(attribute(FunctionAttribute::local_bytes), 0) << source.name;
    EXPECT_EQ(attribute(FunctionAttribute::static_shared_bytes), 0) << source.name;
    EXPECT_EQ(attribute(FunctionAttribute::register_count),
              cache.pack()->entries().at(source.key()).facts.register_count)
        << source.name;
    EXPECT_GE(attribute(FunctionAttribute::max_threads_per_block), source.threads) << source.name;
  }
}

TEST_F(Gpu, Case27_ColdFirstCallTakesLessThanHalfASecond) {
  const auto start = std::chrono::steady_clock::now();
  KernelCache cache({api(), [] { return nvrtc(); },
                     KernelPack::find(pack_candidates(kPackFileName), embedded_digest()),
                     DiskCache({}), embedded_files(), std::string(embedded_digest())});
  const Result<LoadedKernel> kernel =
      cache.get(hopper_forward_source(packed_specialisations()[0]), false);
  const double seconds = seconds_since(start);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  RecordProperty("cold_seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 0.5);
}

TEST_F(Gpu, Case27_WithoutThePackAKernelIsCompiledWithinThreeSeconds) {
  if (!nvrtc().ok()) GTEST_SKIP() << nvrtc().status().message();
  const ScratchFolder folder;
  KernelCache cache({api(), [] { return nvrtc(); }, Status{StatusCode::unavailable, "not here"},
                     DiskCache(folder.path()), embedded_files(), std::string(embedded_digest())});
  const auto start = std::chrono::steady_clock::now();
  const Result<LoadedKernel> kernel =
      cache.get(hopper_forward_source(packed_specialisations()[0]), false);
  const double seconds = seconds_since(start);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(kernel->origin, KernelOrigin::compiled);
  RecordProperty("cold_seconds", std::to_string(seconds));
  RecordProperty("compiler", nvrtc()->version.text());
  EXPECT_LT(seconds, 3);
}

// A packed batch whose lengths live on the device.
struct PackedBatch {
  static constexpr std::int64_t kTokens = 700;
  static constexpr std::int64_t kHeads = 4;
  static constexpr std::int64_t kElements = kTokens * kHeads * 128;

  static AttentionSpec spec() {
    AttentionSpec spec;
    spec.batch = 3;
    spec.heads = spec.kv_heads = kHeads;
    spec.qk_dim = 128;
    spec.q_lengths = spec.kv_lengths = {LengthKind::cumulative, 500, kTokens, MemorySpace::device};
    spec.mask.causal = true;
    return spec;
  }
};

TEST_F(Gpu, Case16_ReplayedGraphReadsTheLengthsThatAreThere) {
  using Capture = DriverResult (*)(StreamHandle, int mode);
  using EndCapture = DriverResult (*)(StreamHandle, void** graph);
  using Instantiate = DriverResult (*)(void** executable, void* graph, unsigned long long flags);
  using LaunchGraph = DriverResult (*)(void* executable, StreamHandle);
  const auto begin_capture = reinterpret_cast<Capture>(driver_symbol("cuStreamBeginCapture"));
  const auto end_capture = reinterpret_cast<EndCapture>(driver_symbol("cuStreamEndCapture"));
  const auto instantiate = reinterpret_cast<Instantiate>(driver_symbol("cuGraphInstantiate"));
  const auto launch = reinterpret_cast<LaunchGraph>(driver_symbol("cuGraphLaunch"));
  ASSERT_TRUE(begin_capture && end_capture && instantiate && launch);

  for (const std::int64_t kv_splits : {1, 3}) {
    PlanOptions choices;
    choices.kv_splits = kv_splits;
    const Plan plan = plan_of(PackedBatch::spec(), choices);
    SCOPED_TRACE(to_text(plan));
    AttentionTensors tensors;
    tensors.q = to_device(random_bf16(PackedBatch::kElements, 1));
    tensors.k = to_device(random_bf16(PackedBatch::kElements, 2));
    tensors.v = to_device(random_bf16(PackedBatch::kElements, 3));
    tensors.o = allocate(PackedBatch::kElements * 2);
    tensors.lse = static_cast<float*>(allocate(PackedBatch::kTokens * PackedBatch::kHeads * 4));
    const std::vector<std::vector<std::int32_t>> lengths = {
        {0, 100, 200, 300}, {0, 0, 500, 700}, {0, 1, 2, 2}};
    std::int32_t* offsets = to_device(lengths[0]);
    tensors.q_lengths = tensors.kv_lengths = offsets;
    const RunOptions options = options_for(plan);

    // A kernel that was never loaded is refused while capturing, and the capture stays whole.
    constexpr int kRelaxed = 2;
    AttentionSpec other = PackedBatch::spec();
    other.softcap = 30;
    other.qk_dim = 256;
    other.v_dim = 256;
    const Plan unprepared = plan_of(other);
    const RunOptions other_options = options_for(unprepared);
    ASSERT_TRUE(prepare(plan).ok());
    ASSERT_EQ(begin_capture(session_->stream(), kRelaxed), DriverResult::success);
    KernelCache empty({api(),
                       [] { return nvrtc(); },
                       Status{StatusCode::unavailable, "none"},
                       DiskCache({}),
                       {},
                       ""});
    EXPECT_EQ(run_hopper_forward({api(), empty}, unprepared, tensors, other_options).code(),
              StatusCode::not_prepared);
    const Status captured = run(plan, tensors, options);
    void* graph = nullptr;
    ASSERT_EQ(end_capture(session_->stream(), &graph), DriverResult::success);
    ASSERT_TRUE(captured.ok()) << captured.message();
    void* executable = nullptr;
    ASSERT_EQ(instantiate(&executable, graph, 0), DriverResult::success);

    for (const std::vector<std::int32_t>& values : lengths) {
      ASSERT_TRUE(session_->copy_to_device(offsets, values.data(), values.size() * 4).ok());
      const auto results = [&](auto&& work) {
        fill(tensors.o, 0xff, PackedBatch::kElements * 2);
        work();
        return to_host(static_cast<const std::uint16_t*>(tensors.o), PackedBatch::kElements);
      };
      const auto direct = results([&] { EXPECT_TRUE(run(plan, tensors, options).ok()); });
      const auto replayed = results(
          [&] { EXPECT_EQ(launch(executable, session_->stream()), DriverResult::success); });
      EXPECT_EQ(direct, replayed) << values[2];
      const auto written = static_cast<std::size_t>(values[3] * PackedBatch::kHeads * 128);
      EXPECT_NE(direct[written - 1], 0xffff);
      EXPECT_EQ(direct.back(), values[3] == PackedBatch::kTokens ? direct.back() : 0xffff)
          << "past the last sequence";
    }
  }
}

TEST_F(Gpu, Case13_ThirtyRunsOfAFullGpuGiveTheSameBits) {
  struct Shape {
    std::int64_t dim, heads, q_tokens, kv_tokens;
  };
  // More tiles than multiprocessors, drawn from one counter; then so few that keys are split.
  for (const Shape& shape : {Shape{64, 8, 5000, 5000}, Shape{128, 8, 4097, 4097},
                             Shape{256, 8, 3000, 3000}, Shape{128, 1, 70, 20000}}) {
    AttentionSpec spec;
    spec.heads = spec.kv_heads = shape.heads;
    spec.qk_dim = shape.dim;
    spec.q_lengths.max_tokens = shape.q_tokens;
    spec.kv_lengths.max_tokens = shape.kv_tokens;
    spec.mask.causal = true;
    const Plan plan = plan_of(spec);
    EXPECT_EQ(plan.forward().kv_splits > 1, shape.heads == 1) << to_text(plan);
    const auto q_count = static_cast<std::size_t>(shape.q_tokens * shape.heads * shape.dim);
    const auto kv_count = static_cast<std::size_t>(shape.kv_tokens * shape.heads * shape.dim);
    AttentionTensors tensors;
    tensors.q = to_device(random_bf16(q_count, 1));
    tensors.k = to_device(random_bf16(kv_count, 2));
    tensors.v = to_device(random_bf16(kv_count, 3));
    tensors.o = allocate(q_count * 2);
    const auto rows = static_cast<std::size_t>(shape.q_tokens * shape.heads);
    tensors.lse = static_cast<float*>(allocate(rows * 4));
    const RunOptions options = options_for(plan);
    std::vector<std::uint16_t> first_o;
    std::vector<float> first_lse;
    for (int call = 0; call < 30; ++call) {
      fill(tensors.o, 0xff, q_count * 2);
      fill(tensors.lse, 0xff, rows * 4);
      const Status status = run(plan, tensors, options);
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<std::uint16_t> o = to_host(static_cast<const std::uint16_t*>(tensors.o), q_count);
      std::vector<float> lse = to_host(static_cast<const float*>(tensors.lse), rows);
      if (call == 0) {
        EXPECT_EQ(std::count(o.begin(), o.end(), 0xffff), 0) << "every element is written";
        first_o = std::move(o);
        first_lse = std::move(lse);
        continue;
      }
      ASSERT_TRUE(o == first_o && lse == first_lse) << "run " << call << ", " << to_text(plan);
    }
  }
}

TEST_F(Gpu, Case25_RunReturnsBeforeTheWorkIsDone) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 16;
  spec.qk_dim = 128;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = 32768;
  const Plan plan = plan_of(spec);
  const std::size_t bytes = std::size_t{32768} * 16 * 128 * 2;
  AttentionTensors tensors;
  tensors.q = tensors.k = tensors.v = allocate(bytes);
  tensors.o = allocate(bytes);
  const RunOptions options = options_for(plan);
  ASSERT_TRUE(prepare(plan).ok());
  ASSERT_TRUE(session_->synchronize().ok());
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(run(plan, tensors, options).ok());
  const double launched = seconds_since(start);
  ASSERT_TRUE(session_->synchronize().ok());
  const double done = seconds_since(start);
  RecordProperty("launch_seconds", std::to_string(launched));
  RecordProperty("done_seconds", std::to_string(done));
  EXPECT_LT(launched, done / 5);
}

TEST_F(Gpu, Case07_OffsetsBeyondTwoToTheThirtyOneElements) {
  // The last query's window holds the last five keys, 2^31 elements from the first.
  constexpr std::int64_t kKeys = (std::int64_t{1} << 24) + 77;
  constexpr std::int64_t kDim = 128;
  AttentionSpec spec;
  spec.qk_dim = kDim;
  spec.q_lengths.max_tokens = 65;
  spec.kv_lengths.max_tokens = kKeys;
  spec.mask.causal = true;
  spec.mask.window_left = 4;
  const Plan plan = plan_of(spec);
  const std::size_t kv_bytes = static_cast<std::size_t>(kKeys * kDim) * 2;
  AttentionTensors tensors;
  auto* q = static_cast<std::uint16_t*>(allocate(65 * kDim * 2));
  auto* k = static_cast<std::uint16_t*>(allocate(kv_bytes));
  auto* v = static_cast<std::uint16_t*>(allocate(kv_bytes));
  auto* o = static_cast<std::uint16_t*>(allocate(65 * kDim * 2));
  fill(q, 0, 65 * kDim * 2);
  fill(k, 0, kv_bytes);
  fill(v, 0x42, kv_bytes);  // 48.5 wherever no query looks
  std::vector<std::uint16_t> tail(69 * kDim);
  for (std::int64_t row = 0; row < 69; ++row) {
    for (std::int64_t d = 0; d < kDim; ++d) {
      reference::store(tail.data(), DType::bf16, row * kDim + d, static_cast<float>(row));
    }
  }
  ASSERT_TRUE(session_->copy_to_device(v + (kKeys - 69) * kDim, tail.data(), tail.size() * 2).ok());
  tensors.q = q;
  tensors.k = k;
  tensors.v = v;
  tensors.o = o;
  const Status status = run(plan, tensors, options_for(plan));
  ASSERT_TRUE(status.ok()) << status.message();
  const auto result = to_host(o, 65 * kDim);
  for (std::int64_t row = 0; row < 65; ++row) {
    ASSERT_EQ(reference::load(result.data(), DType::bf16, row * kDim + 5),
              static_cast<float>(row + 2))
        << row;
  }
}

}  // namespace
}  // namespace tilewright::cuda
