// tests/cuda/gpu_c_api_test.cpp: the C interface on a real GPU, as an engine uses it: device
// pointers, its own streams, threads and contexts.
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "cuda/gpu_fixture.h"
#include "tilewright/c/tilewright.h"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kTokens = 300;
constexpr std::int64_t kDim = 64;
constexpr std::size_t kElements = kTokens * kHeads * kDim;

struct PlanDeleter {
  void operator()(tilewright_plan* plan) const { tilewright_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<tilewright_plan, PlanDeleter>;

PlanHandle make_plan(bool causal = true, const char* device = "cuda") {
  tilewright_attention_spec spec;
  tilewright_attention_spec_init(&spec);
  spec.batch = 1;
  spec.heads = spec.kv_heads = kHeads;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = kTokens;
  spec.qk_dim = kDim;
  spec.dtype = TILEWRIGHT_BF16;
  spec.causal = causal;
  spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
  tilewright_plan_options options;
  tilewright_plan_options_init(&options);
  options.device = device;
  tilewright_plan* plan = nullptr;
  EXPECT_EQ(tilewright_plan_create(&spec, &options, &plan), TILEWRIGHT_OK)
      << tilewright_error_text();
  return PlanHandle(plan);
}

// Device memory of the current context, a workspace and a stream: what one caller brings.
struct Caller {
  const DriverApi& api;
  StreamHandle stream = nullptr;
  DevicePointer memory[6] = {};  // q, k, v, o, lse, workspace
  std::size_t workspace_bytes = 0;

  Caller(const DriverApi& driver, const tilewright_plan* plan) : api(driver) {
    workspace_bytes = tilewright_plan_workspace_bytes(plan);
    expect(api.stream_create(&stream, 1));
    for (int i = 0; i < 4; ++i) expect(api.memory_allocate(&memory[i], kElements * 2));
    expect(api.memory_allocate(&memory[4], kTokens * kHeads * 4));
    expect(api.memory_allocate(&memory[5], workspace_bytes));
    expect(api.memory_set_async(memory[5], 0xff, workspace_bytes, stream));
    EXPECT_EQ(tilewright_init_workspace(plan, at<void>(5), workspace_bytes, stream), TILEWRIGHT_OK)
        << tilewright_error_text();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    for (const DevicePointer address : memory) (void)api.memory_free(address);
    (void)api.stream_destroy(stream);
  }

  template <typename T>
  T* at(int which) const {
    return reinterpret_cast<T*>(memory[which]);
  }

  void set_inputs(const std::vector<std::uint16_t> (&inputs)[3]) {
    for (int i = 0; i < 3; ++i)
      expect(api.copy_to_device_async(memory[i], inputs[i].data(), kElements * 2, stream));
    expect(api.memory_set_async(memory[3], 0xff, kElements * 2, stream));
  }

  tilewright_status run(const tilewright_plan* plan) const {
    tilewright_tensors tensors;
    tilewright_tensors_init(&tensors);
    tensors.q = at<void>(0);
    tensors.k = at<void>(1);
    tensors.v = at<void>(2);
    tensors.o = at<void>(3);
    tensors.lse = at<float>(4);
    tilewright_run_options options;
    tilewright_run_options_init(&options);
    options.workspace = at<void>(5);
    options.workspace_bytes = workspace_bytes;
    options.stream = stream;
    return tilewright_run(plan, &tensors, &options);
  }

  std::vector<std::uint16_t> output() {
    std::vector<std::uint16_t> o(kElements);
    expect(api.copy_to_host_async(o.data(), memory[3], kElements * 2, stream));
    expect(api.stream_synchronize(stream));
    return o;
  }

  static void expect(DriverResult result) { EXPECT_EQ(result, DriverResult::success); }
};

class GpuCApi : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (HasFatalFailure()) return;
    for (std::uint32_t i = 0; i < 3; ++i) inputs_[i] = random_bf16(kElements, i + 1);
  }

  // The same problem on this CPU, through the same interface.
  std::vector<float> on_cpu() {
    const PlanHandle plan = make_plan(true, "cpu");
    std::vector<std::uint16_t> o(kElements);
    tilewright_tensors tensors;
    tilewright_tensors_init(&tensors);
    tensors.q = inputs_[0].data();
    tensors.k = inputs_[1].data();
    tensors.v = inputs_[2].data();
    tensors.o = o.data();
    EXPECT_EQ(tilewright_run(plan.get(), &tensors, nullptr), TILEWRIGHT_OK)
        << tilewright_error_text();
    return as_floats(o);
  }

  static std::vector<float> as_floats(const std::vector<std::uint16_t>& values) {
    std::vector<float> floats(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      floats[i] = static_cast<float>(
          reference::load(values.data(), DType::bf16, static_cast<std::int64_t>(i)));
    }
    return floats;
  }

  std::vector<std::uint16_t> run_once(const tilewright_plan* plan) {
    Caller caller(api(), plan);
    caller.set_inputs(inputs_);
    EXPECT_EQ(caller.run(plan), TILEWRIGHT_OK) << tilewright_error_text();
    return caller.output();
  }

  std::vector<std::uint16_t> inputs_[3];
};

TEST_F(GpuCApi, DevicePointersOnTheCallersStreamGiveWhatTheCpuGives) {
  const PlanHandle plan = make_plan();
  ASSERT_NE(plan, nullptr);
  EXPECT_NE(std::strstr(tilewright_plan_text(plan.get()), "hopper"), nullptr);
  ASSERT_EQ(tilewright_prepare(plan.get()), TILEWRIGHT_OK) << tilewright_error_text();
  const std::vector<float> got = as_floats(run_once(plan.get()));
  const std::vector<float> want = on_cpu();
  float largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Two roundings to bf16 of values up to 4, and of P.
    ASSERT_NEAR(got[i], want[i], 0.02F * (1 + std::fabs(want[i]))) << i;
    largest = std::max(largest, std::fabs(got[i] - want[i]));
  }
  RecordProperty("largest_difference", std::to_string(largest));
}

TEST_F(GpuCApi, ManyThreadsShareAPlanEachWithItsStreamAndWorkspace) {
  const PlanHandle plan = make_plan();
  ASSERT_NE(plan, nullptr);
  const std::vector<std::uint16_t> expected = run_once(plan.get());
  ContextHandle context = nullptr;
  ASSERT_EQ(api().context_get_current(&context), DriverResult::success);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      Caller::expect(api().context_set_current(context));
      Caller caller(api(), plan.get());
      for (int call = 0; call < 20; ++call) {
        caller.set_inputs(inputs_);
        EXPECT_EQ(caller.run(plan.get()), TILEWRIGHT_OK) << tilewright_error_text();
        wrong += caller.output() != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GpuCApi, FirstCallsOfManyThreadsAtOnceLoadAKernelOnce) {
  const PlanHandle plan = make_plan(false);
  ASSERT_NE(plan, nullptr);
  ContextHandle context = nullptr;
  ASSERT_EQ(api().context_get_current(&context), DriverResult::success);
  std::vector<std::vector<std::uint16_t>> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      Caller::expect(api().context_set_current(context));
      result = run_once(plan.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  EXPECT_NE(results[0][0], 0xffff);
}

TEST_F(GpuCApi, APlanRunsInEveryContextOfTheProcess) {
  const PlanHandle plan = make_plan();
  ASSERT_NE(plan, nullptr);
  const std::vector<std::uint16_t> expected = run_once(plan.get());
  constexpr int kContextCreateVersion = 3020;  // later ones take more arguments
  using Create = DriverResult (*)(ContextHandle*, unsigned flags, DeviceOrdinal);
  using Destroy = DriverResult (*)(ContextHandle);
  const auto create = reinterpret_cast<Create>(driver_symbol("cuCtxCreate", kContextCreateVersion));
  const auto destroy = reinterpret_cast<Destroy>(driver_symbol("cuCtxDestroy"));
  ASSERT_TRUE(create && destroy);
  ContextHandle primary = nullptr;
  ASSERT_EQ(api().context_get_current(&primary), DriverResult::success);
  // The second of two created ones may be given the address of the first: kernels are kept by
  // identity.
  for (int round = 0; round < 2; ++round) {
    ContextHandle created = nullptr;
    ASSERT_EQ(create(&created, 0, 0), DriverResult::success);  // and current
    EXPECT_EQ(run_once(plan.get()), expected) << "created context, round " << round;
    EXPECT_EQ(api().context_set_current(primary), DriverResult::success);
    EXPECT_EQ(run_once(plan.get()), expected) << "primary context, round " << round;
    EXPECT_EQ(destroy(created), DriverResult::success);
  }
}

TEST_F(GpuCApi, WithoutAContextARunSaysWhatIsAccepted) {
  const PlanHandle plan = make_plan();
  ASSERT_NE(plan, nullptr);
  std::string message;
  tilewright_status status = TILEWRIGHT_OK;
  std::thread([&] {  // a thread to which no context was ever given
    status = tilewright_prepare(plan.get());
    message = tilewright_error_text();
  })
      .join();
  EXPECT_EQ(status, TILEWRIGHT_INVALID_ARGUMENT);
  EXPECT_NE(message.find("no current CUDA context"), std::string::npos) << message;
}

}  // namespace
}  // namespace tilewright::cuda
