// tests/cpu/backend_test.cpp: how calls are divided, run on threads, reported and refused.
#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "backend/cpu/forward_call.h"
#include "cpu/cpu_run.h"
#include "reference/random.h"

namespace tilewright::cpu_test {
namespace {

using schedule::Index;

reference::Case small_case(std::int64_t tokens = 300, bool causal = true) {
  reference::Case what;
  what.spec.batch = 2;
  what.spec.heads = 4;
  what.spec.kv_heads = 2;
  what.spec.q_lengths.max_tokens = what.spec.kv_lengths.max_tokens = tokens;
  what.spec.qk_dim = 32;
  what.spec.mask.causal = causal;
  return what;
}

std::vector<std::byte> output(const reference::ProblemData& data) {
  const reference::Buffer& o = data.buffer(reference::TensorId::o);
  const reference::Buffer& lse = data.buffer(reference::TensorId::lse);
  std::vector<std::byte> bytes(o.data, o.data + o.bytes);
  bytes.insert(bytes.end(), lse.data, lse.data + lse.bytes);
  return bytes;
}

class ThreadExecutor : public Executor {
 public:
  std::int64_t concurrency() const noexcept override { return 8; }
  void run_workers(std::int64_t workers,
                   const std::function<void(std::int64_t worker)>& work) override {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] {
        ++calls;
        work(i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::atomic<int> calls = 0;
};

TEST(CpuTasks, cover_every_row_once) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const reference::Case what = reference::random_case(seed);
    const auto data = reference::ProblemData::create(what);
    ASSERT_TRUE(data.ok()) << data.status().message();
    reference::Random random(seed);
    cpu::ForwardCall call{data->problem(), data->tensors(), {random.integer(1, 100), 16}};
    call.heads_per_tile = schedule::min(data->problem().group(), call.tile.q_rows);
    call.kv_heads_per_task = random.integer(1, 3);
    std::vector<int> seen(static_cast<std::size_t>(data->problem().lse_rows()));
    for (Index index = 0; index < call.tasks(); ++index) {
      const cpu::ForwardTask task = cpu::make_task(call, index, 0);
      ASSERT_LE(task.rows(), call.tile.q_rows);
      for (Index head = 0; head < task.kv_heads; ++head) {
        const cpu::ForwardTask part = cpu::of_kv_head(call, task, head);
        for (Index row = 0; row < part.rows(); ++row) {
          ++seen[static_cast<std::size_t>(cpu::lse_index(call, part, row))];
        }
      }
    }
    std::vector<int> wanted(seen.size());
    for (const reference::RowIndex& row : reference::all_rows(data->problem(), data->tensors())) {
      ++wanted[static_cast<std::size_t>(
          reference::lse_index(data->problem(), data->tensors(), row))];
    }
    ASSERT_EQ(seen, wanted) << reference::to_text(what);
  }
}

TEST(CpuTasks, of_a_causal_head_come_longest_first) {
  const auto data = reference::ProblemData::create(small_case());
  cpu::ForwardCall call{data->problem(), data->tensors(), {64, 16}};
  call.heads_per_tile = 2;
  Index before = 1 << 30;
  for (Index index = 0; index < call.token_tiles(); ++index) {
    const cpu::ForwardTask task = cpu::make_task(call, index, 0);
    const Index keys = task.rule.visited(task.token_begin, task.token_end).size();
    EXPECT_LE(keys, before);
    before = keys;
  }
}

TEST(CpuRun, any_number_of_workers_gives_the_same_bits) {
  for (const Schedule schedule : {Schedule::q_outer, Schedule::standard}) {
    for (const std::int64_t splits : {1, 3}) {
      std::vector<std::byte> first;
      for (const std::int64_t workers : {1, 2, 3, 7}) {
        auto data = reference::ProblemData::create(small_case());
        data->prepare_run();
        ThreadExecutor executor;
        RunOptions options;
        options.executor = &executor;
        const Plan plan = make_plan(data->problem(), {"", {32, 48}, splits, schedule, workers});
        ASSERT_TRUE(run(plan, data->tensors(), options).ok());
        EXPECT_GT(executor.calls, 0);
        if (first.empty()) first = output(*data);
        EXPECT_EQ(output(*data), first) << workers << " workers, " << splits << " splits";
      }
    }
  }
}

TEST(CpuRun, reports_progress_from_one_worker_up_to_the_end) {
  for (const Schedule schedule : {Schedule::q_outer, Schedule::standard}) {
    auto data = reference::ProblemData::create(small_case());
    data->prepare_run();
    std::vector<double> fractions;
    RunOptions options;
    options.progress = [&](double fraction) { fractions.push_back(fraction); };
    const Plan plan = make_plan(data->problem(), {"", {32, 48}, 1, schedule, 1});
    ASSERT_TRUE(run(plan, data->tensors(), options).ok());
    ASSERT_FALSE(fractions.empty());
    EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
    EXPECT_GT(fractions.front(), 0);
    EXPECT_EQ(fractions.back(), 1);
  }
}

TEST(CpuRun, an_exception_of_a_callback_becomes_a_status) {
  auto data = reference::ProblemData::create(small_case());
  data->prepare_run();
  RunOptions options;
  options.progress = [](double) { throw std::runtime_error("the window was closed"); };
  const Status status = run(make_plan(data->problem(), {"", {32, 48}}), data->tensors(), options);
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_EQ(status.message(), "the window was closed");
}

TEST(CpuRun, refuses_by_name_what_it_cannot_run) {
  auto data = reference::ProblemData::create(small_case());
  const auto refusal = [&](const How& how) {
    return run(make_plan(data->problem(), how), data->tensors());
  };
  const Status isa = refusal({"avx1024", {32, 48}});
  EXPECT_EQ(isa.code(), StatusCode::unavailable);
  EXPECT_EQ(isa.message().rfind("plan.isa is \"avx1024\"; accepted on this CPU: portable", 0), 0u)
      << isa.message();
  const Status tile = refusal({"", {32, 40}});
  EXPECT_EQ(tile.code(), StatusCode::invalid_argument);
  EXPECT_EQ(tile.message().rfind("plan.tile is 32x40", 0), 0u) << tile.message();
  EXPECT_EQ(refusal({"", {0, 48}}).code(), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({"", {32, 48}, 0}).code(), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({"", {32, 48}, 1, Schedule::kv_outer}).code(), StatusCode::unsupported);
}

TEST(CpuRun, states_the_bytes_that_standard_attention_would_need) {
  AttentionSpec spec;
  spec.q_lengths.max_tokens = spec.kv_lengths.max_tokens = std::int64_t{1} << 22;
  spec.qk_dim = 1;
  const auto problem = AttentionProblem::create(spec);
  ASSERT_TRUE(problem.ok());
  std::vector<float> operand(std::size_t{1} << 22);
  AttentionTensors tensors;
  tensors.q = tensors.k = tensors.v = operand.data();
  tensors.o = operand.data();
  const Plan plan = make_plan(*problem, {"", {64, 64}, 1, Schedule::standard});
  const Status status = run(plan, tensors);
  EXPECT_EQ(status.code(), StatusCode::out_of_memory);
  EXPECT_NE(status.message().find(std::to_string(plan.workspace_bytes)), std::string::npos)
      << status.message();
}

TEST(CpuWorkspace, stays_small_however_long_the_sequence) {
  constexpr auto tile = schedule::cpu_forward_default_tile(1 << 20, 131072, 64, 64);
  constexpr Index bytes =
      schedule::cpu_forward_workspace_bytes(tile.q_rows, tile.kv_rows, 64, 64, 16, 131072, 1);
  EXPECT_LT(bytes, 64 << 20);
}

TEST(CpuTile, default_fits_three_quarters_of_l2) {
  for (const Index l2 : {256 << 10, 512 << 10, 1 << 20, 2 << 20}) {
    for (const Index dim : {1, 40, 64, 128, 256}) {
      for (const Index rows : {1, 7, 100, 100000}) {
        const auto tile = schedule::cpu_forward_default_tile(l2, rows, dim, dim);
        EXPECT_TRUE(schedule::cpu_forward_legal(tile.q_rows, tile.kv_rows));
        EXPECT_LE(tile.q_rows, rows);
        EXPECT_LE(
            schedule::cpu_forward_footprint(tile.q_rows, tile.kv_rows, dim, dim).total_bytes() * 4,
            l2 * 3)
            << l2 << " " << dim;
      }
    }
  }
}

Plan plan_for(const Machine& machine, DType dtype, std::int64_t queries, bool tokens_first) {
  AttentionSpec spec;
  spec.dtype = dtype;
  spec.heads = spec.kv_heads = 8;
  spec.q_lengths.max_tokens = queries;
  spec.kv_lengths.max_tokens = 32768;
  spec.qk_dim = 128;
  if (!tokens_first) spec.k.strides = spec.v.strides = Strides::bhsd(32768, 8, 128);
  return plan(AttentionProblem::create(spec).value(), machine).value();
}

TEST(CpuPlan, few_queries_split_keys_rather_than_the_heads_of_a_token) {
  const Machine machine = machine_profile("zen5_vm").value();
  EXPECT_GE(plan_for(machine, DType::f32, 1, true).forward().kv_splits, machine.units);
  EXPECT_EQ(plan_for(machine, DType::f32, 1, false).forward().kv_splits, 1);
}

TEST(CpuPlan, matrix_tiles_multiply_bf16_where_there_are_any) {
  Machine machine = machine_profile("xeon_8480p").value();
  EXPECT_EQ(plan_for(machine, DType::bf16, 4096, true).forward().isa, "amx_bf16");
  EXPECT_EQ(plan_for(machine, DType::f32, 4096, true).forward().isa, "avx512");
  std::erase(machine.features, "amx_tile");
  EXPECT_EQ(plan_for(machine, DType::bf16, 4096, true).forward().isa, "avx512_bf16");
}

}  // namespace
}  // namespace tilewright::cpu_test
