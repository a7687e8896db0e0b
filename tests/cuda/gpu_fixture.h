// tests/cuda/gpu_fixture.h: a session on the GPU, with device copies of numbers and plans for it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "backend/cuda/device_session.h"
#include "reference/element.h"
#include "tilewright/tilewright.h"

namespace tilewright::cuda {

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    Result<DeviceSession> session = DeviceSession::open();
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_.emplace(std::move(session).value());
  }

  const DriverApi& api() { return session_->api(); }

  void* allocate(std::size_t bytes) {
    Result<void*> memory = session_->allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status().message();
    return memory.ok() ? *memory : nullptr;
  }

  template <typename T>
  T* to_device(const std::vector<T>& values) {
    auto* memory = static_cast<T*>(allocate(values.size() * sizeof(T)));
    EXPECT_TRUE(session_->copy_to_device(memory, values.data(), values.size() * sizeof(T)).ok());
    return memory;
  }

  template <typename T>
  std::vector<T> to_host(const T* device, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(session_->copy_to_host(values.data(), device, count * sizeof(T)).ok());
    return values;
  }

  void fill(void* device, unsigned char value, std::size_t bytes) {
    EXPECT_EQ(api().memory_set_async(reinterpret_cast<DevicePointer>(device), value, bytes,
                                     session_->stream()),
              DriverResult::success);
  }

  std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint32_t seed) {
    std::vector<std::uint16_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      seed = seed * 1664525 + 1013904223;
      reference::store(
          values.data(), DType::bf16, static_cast<std::int64_t>(i),
          static_cast<float>(static_cast<std::int32_t>(seed >> 8) - (1 << 23)) / (1 << 22));
    }
    return values;
  }

  /// Of bf16 unless the spec says fp16, its operands aligned for TMA.
  Plan plan_of(AttentionSpec spec, const PlanOptions& options = {}) {
    if (spec.dtype != DType::f16) spec.dtype = DType::bf16;
    spec.q.alignment_bytes = spec.k.alignment_bytes = spec.v.alignment_bytes = 16;
    const Result<AttentionProblem> problem = AttentionProblem::create(spec);
    EXPECT_TRUE(problem.ok()) << problem.status().message();
    const Result<Machine> machine = this_gpu();
    EXPECT_TRUE(machine.ok()) << machine.status().message();
    const Result<Plan> chosen = plan(*problem, *machine, options);
    EXPECT_TRUE(chosen.ok()) << chosen.status().message();
    return *chosen;
  }

  RunOptions options_for(const Plan& plan) {
    RunOptions options;
    options.stream = session_->stream();
    options.workspace = {allocate(workspace_bytes(plan)), workspace_bytes(plan)};
    EXPECT_TRUE(init_workspace(plan, options.workspace, options.stream).ok());
    return options;
  }

  std::optional<DeviceSession> session_;
};

}  // namespace tilewright::cuda
