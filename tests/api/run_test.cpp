// tests/api/run_test.cpp: what run() checks, whom it calls, and what it never lets out.
#include "tilewright/run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "reference/problem_data.h"
#include "reference/tolerance.h"

namespace tilewright {
namespace {

using reference::all_rows;
using reference::Case;
using reference::compare;
using reference::ProblemData;

Case everything() {
  Case what;
  what.name = "everything";
  what.spec.batch = 2;
  what.spec.heads = 4;
  what.spec.kv_heads = 2;
  what.spec.q_lengths = {LengthKind::per_sequence, 150};
  what.spec.kv_lengths = {LengthKind::per_sequence, 170};
  what.q_lengths = {150, 20};
  what.kv_lengths = {33, 170};
  what.spec.qk_dim = 32;
  what.spec.alibi = PerHead::per_head;
  what.spec.sinks = PerHead::per_head;
  what.spec.bias.kind = BiasKind::additive;
  return what;
}

Plan plan_of(const AttentionProblem& problem, const PlanOptions& options = {}) {
  const Result<Plan> chosen = plan(problem, this_cpu(), options);
  EXPECT_TRUE(chosen.ok()) << chosen.status().message();
  return *chosen;
}

ProblemData make(const Case& what) {
  return *ProblemData::create(what);
}

void expect_right(const ProblemData& data) {
  const auto result =
      compare(data.problem(), data.tensors(), all_rows(data.problem(), data.tensors()));
  EXPECT_TRUE(result.ok()) << reference::to_text(result, "", 1);
}

// Takes one address away, or moves it, and expects the message.
void expect_refused(const std::function<void(AttentionTensors&)>& plant,
                    const std::string& message) {
  ProblemData data = make(everything());
  AttentionTensors tensors = data.tensors();
  plant(tensors);
  const Status status = run(plan_of(data.problem()), tensors);
  EXPECT_EQ(status.code(), StatusCode::invalid_argument) << message;
  EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
}

template <typename T>
const T* moved(const T* address, std::int64_t bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(address) + bytes);
}

TEST(Run, Case29_a_missing_address_is_named) {
  using T = AttentionTensors;
  expect_refused([](T& t) { t.q = nullptr; }, "q is null");
  expect_refused([](T& t) { t.k = nullptr; }, "k is null");
  expect_refused([](T& t) { t.v = nullptr; }, "v is null");
  expect_refused([](T& t) { t.o = nullptr; }, "o is null");
  expect_refused([](T& t) { t.q_lengths = nullptr; }, "q_lengths is null");
  expect_refused([](T& t) { t.kv_lengths = nullptr; }, "kv_lengths is null");
  expect_refused([](T& t) { t.alibi_slopes = nullptr; }, "alibi_slopes is null");
  expect_refused([](T& t) { t.sinks = nullptr; }, "sinks is null");
  expect_refused([](T& t) { t.bias = nullptr; }, "bias is null");
}

TEST(Run, Case29_a_misaligned_address_is_named) {
  using T = AttentionTensors;
  expect_refused([](T& t) { t.q = moved(static_cast<const char*>(t.q), 2); }, "q is at 0x");
  expect_refused([](T& t) { t.lse = const_cast<float*>(moved(t.lse, 1)); }, "lse is at 0x");
  expect_refused([](T& t) { t.sinks = moved(t.sinks, 2); }, "sinks is at 0x");
  expect_refused([](T& t) { t.bias = moved(static_cast<const char*>(t.bias), 1); }, "bias is at");
  expect_refused([](T& t) { t.kv_lengths = moved(t.kv_lengths, 3); }, "kv_lengths is at 0x");
}

TEST(Run, a_promised_alignment_is_held_to) {
  Case what = everything();
  what.spec.v.alignment_bytes = 64;
  ProblemData data = make(what);
  AttentionTensors tensors = data.tensors();
  EXPECT_TRUE(run(plan_of(data.problem()), tensors).ok());
  tensors.v = moved(static_cast<const char*>(tensors.v), 4);
  const Status status = run(plan_of(data.problem()), tensors);
  EXPECT_NE(status.message().find("accepted: a multiple of 64 bytes"), std::string::npos)
      << status.message();
}

TEST(Run, a_workspace_too_small_or_misaligned_is_refused) {
  ProblemData data = make(everything());
  const Plan chosen = plan_of(data.problem());
  const std::size_t needed = workspace_bytes(chosen);
  std::vector<char> memory(needed + 192);
  char* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  RunOptions options;
  options.workspace = {aligned + 1, needed};
  EXPECT_FALSE(run(chosen, data.tensors(), options).ok());
  options.workspace = {aligned, needed};
  EXPECT_TRUE(run(chosen, data.tensors(), options).ok());
  if (needed == 0) return;
  options.workspace = {aligned, needed - 1};
  const Status status = run(chosen, data.tensors(), options);
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_NE(status.message().find(std::to_string(needed) + " or more"), std::string::npos)
      << status.message();
}

TEST(Run, addresses_of_tensors_without_elements_may_be_null) {
  Case what;
  what.spec.batch = 0;
  what.spec.qk_dim = 8;
  what.spec.q_lengths.max_tokens = what.spec.kv_lengths.max_tokens = 5;
  const auto problem = AttentionProblem::create(what.spec);
  ASSERT_TRUE(problem.ok());
  EXPECT_TRUE(run(plan_of(*problem), {}).ok());
}

TEST(Run, without_keys_k_and_v_may_be_null_and_o_is_zero) {
  AttentionSpec spec;
  spec.qk_dim = 8;
  spec.q_lengths.max_tokens = 3;
  const std::vector<float> q(24, 1.0f);
  std::vector<float> o(24, 7.0f);
  AttentionTensors tensors;
  tensors.q = q.data();
  tensors.o = o.data();
  const Status status = attention(spec, tensors);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(o, std::vector<float>(24, 0.0f));
}

TEST(Run, attention_does_it_all_in_one_call) {
  ProblemData data = make(everything());
  data.prepare_run();
  const Status status = attention(data.what().spec, data.tensors());
  ASSERT_TRUE(status.ok()) << status.message();
  expect_right(data);
  EXPECT_EQ(data.violation(), std::nullopt);
}

TEST(Run, attention_returns_the_specs_own_error) {
  AttentionSpec spec;
  spec.qk_dim = 300;
  EXPECT_EQ(attention(spec, {}).message(), "qk_dim is 300; accepted: 1 to 256");
}

// Calls the work of every worker, and counts.
class CountingExecutor final : public Executor {
 public:
  std::int64_t concurrency() const noexcept override { return 4; }
  void run_workers(std::int64_t workers,
                   const std::function<void(std::int64_t worker)>& work) override {
    ++calls;
    for (std::int64_t worker = 0; worker < workers; ++worker) work(worker);
    most_workers = std::max(most_workers, workers);
  }
  int calls = 0;
  std::int64_t most_workers = 0;
};

TEST(Run, the_callers_executor_is_the_one_used) {
  ProblemData data = make(everything());
  PlanOptions plan_options;
  plan_options.workers = 4;
  CountingExecutor executor;
  RunOptions options;
  options.executor = &executor;
  data.prepare_run();
  ASSERT_TRUE(run(plan_of(data.problem(), plan_options), data.tensors(), options).ok());
  EXPECT_GE(executor.calls, 1);
  EXPECT_LE(executor.most_workers, 4);
  expect_right(data);
}

class ThrowingExecutor final : public Executor {
 public:
  std::int64_t concurrency() const noexcept override { return 4; }
  void run_workers(std::int64_t, const std::function<void(std::int64_t)>&) override {
    throw std::runtime_error("no threads today");
  }
};

TEST(Run, what_an_executor_throws_becomes_a_status) {
  ProblemData data = make(everything());
  PlanOptions plan_options;
  plan_options.workers = 4;
  ThrowingExecutor executor;
  RunOptions options;
  options.executor = &executor;
  const Status status = run(plan_of(data.problem(), plan_options), data.tensors(), options);
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_EQ(status.message(), "no threads today");
}

TEST(Run, progress_rises_from_one_worker_up_to_one) {
  Case what = everything();
  what.spec.heads = what.spec.kv_heads = 16;
  ProblemData data = make(what);
  std::vector<double> seen;
  RunOptions options;
  options.progress = [&](double fraction) { seen.push_back(fraction); };
  PlanOptions plan_options;
  plan_options.workers = 1;  // of several, the one that reports may come too late to do any
  ASSERT_TRUE(run(plan_of(data.problem(), plan_options), data.tensors(), options).ok());
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_GE(seen[i], i == 0 ? 0.0 : seen[i - 1]);
    EXPECT_LE(seen[i], 1.0);
  }
}

TEST(Run, calls_from_many_threads_at_once_are_right) {
  ProblemData data = make(everything());
  const Plan chosen = plan_of(data.problem());
  std::vector<ProblemData> results;
  for (int i = 0; i < 3; ++i) {
    results.push_back(make(everything()));
    results.back().prepare_run();
  }
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (ProblemData& result : results) {
    threads.emplace_back([&] {
      if (!run(chosen, result.tensors()).ok()) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  for (const ProblemData& result : results) expect_right(result);
}

TEST(Run, a_plan_for_another_device_is_refused_by_name) {
  ProblemData data = make(everything());
  Plan chosen = plan_of(data.problem());
  chosen.family = KernelFamily::modelled;
  chosen.machine_id = "a_paper_device";
  const Status status = run(chosen, data.tensors());
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_NE(status.message().find("a_paper_device"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace tilewright
