// tests/cpu/cpu_run.h: runs one case on the CPU backend with a given instruction set and tile, in
// poisoned buffers, and judges it against fp64.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "reference/problem_data.h"
#include "reference/random_problem.h"
#include "reference/tolerance.h"
#include "schedule/cpu_forward.h"
#include "tilewright/tilewright.h"

namespace tilewright::cpu_test {

/// How one case is run.
struct How {
  std::string isa;
  Tile tile;
  std::int64_t splits = 1;
  Schedule schedule = Schedule::q_outer;
  std::int64_t workers = 2;
};

inline Plan make_plan(const AttentionProblem& problem, const How& how) {
  const AttentionSpec& spec = problem.spec();
  Plan plan(problem);
  ForwardPlan forward;
  forward.schedule = how.schedule;
  forward.tile = how.tile;
  forward.kv_splits = how.splits;
  forward.workers = how.workers;
  forward.isa = how.isa;
  plan.kernel = forward;
  plan.workspace_bytes = how.schedule == Schedule::standard
                             ? schedule::cpu_standard_workspace_bytes(
                                   how.tile.q_rows, how.tile.kv_rows, spec.qk_dim, spec.v_dim,
                                   how.workers, problem.q_len(), problem.kv_len())
                             : schedule::cpu_forward_workspace_bytes(
                                   how.tile.q_rows, how.tile.kv_rows, spec.qk_dim, spec.v_dim,
                                   how.workers, problem.lse_rows(), how.splits);
  return plan;
}

/// Memory lent to a run, full of NaN.
struct PoisonedWorkspace {
  explicit PoisonedWorkspace(const Plan& plan)
      : bytes(workspace_bytes(plan)), storage(new std::byte[bytes + 64]) {
    reference::poison(storage.get(), bytes + 64);
    auto address = reinterpret_cast<std::uintptr_t>(storage.get());
    data = storage.get() + (64 - address % 64) % 64;
  }
  std::size_t bytes;
  std::unique_ptr<std::byte[]> storage;
  std::byte* data = nullptr;
};

/// Runs the case and expects it to be right and to touch nothing it must not.
inline void expect_right(const reference::Case& what, const How& how) {
  SCOPED_TRACE(reference::to_text(what) + ", isa " + how.isa + ", tile " +
               std::to_string(how.tile.q_rows) + "x" + std::to_string(how.tile.kv_rows) +
               ", splits " + std::to_string(how.splits) + ", " + std::string(name(how.schedule)));
  Result<reference::ProblemData> data = reference::ProblemData::create(what);
  ASSERT_TRUE(data.ok()) << data.status().message();
  data->prepare_run();
  const Plan plan = make_plan(data->problem(), how);
  const PoisonedWorkspace workspace(plan);
  RunOptions options;
  options.workspace = {workspace.data, workspace.bytes};
  const Status status = run(plan, data->tensors(), options);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(data->violation(), std::nullopt);
  const auto rows = reference::sample_rows(data->problem(), data->tensors(), 400, what.seed);
  const auto result = reference::compare(data->problem(), data->tensors(), rows);
  EXPECT_TRUE(result.ok()) << reference::to_text(result, to_text(plan), what.seed);
}

}  // namespace tilewright::cpu_test
