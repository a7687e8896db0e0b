// src/backend/cpu/cpu_backend.cpp: runs forward plans on this machine's cores.
#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <span>

#include "backend/cpu/kernels.h"

namespace tilewright::cpu {
namespace {

// Below this many multiply-adds a worker, waking it costs more than it saves.
constexpr double kLeastWorkPerWorker = 1e6;

struct FreeAligned {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

// Hands out task indices to workers, reports progress from worker 0 and keeps the first exception
// from ending the process.
class TaskQueue {
 public:
  TaskQueue(Index tasks, const std::function<void(double)>& progress, Executor* executor)
      : tasks_(tasks), progress_(progress), executor_(executor) {}

  template <class Work>
  void run(Index workers, const Work& work) {
    if (executor_ != nullptr) {
      executor_->run_workers(workers, [&](std::int64_t worker) { drain(worker, work); });
    } else {
      drain(0, work);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class Work>
  void drain(Index worker, const Work& work) {
    try {
      for (Index task = next_++; task < tasks_; task = next_++) {
        work(task, worker);
        if (worker == 0 && progress_) {
          progress_(static_cast<double>(schedule::min(next_, tasks_)) /
                    static_cast<double>(tasks_));
        }
      }
    } catch (...) {
      next_ = tasks_;
      if (!failed_.test_and_set()) error_ = std::current_exception();
    }
  }

  Index tasks_;
  const std::function<void(double)>& progress_;
  Executor* executor_;  // null: this thread alone
  std::atomic<Index> next_{0};
  std::atomic_flag failed_;
  std::exception_ptr error_;
};

Status check_tile(const ForwardPlan& forward) {
  if (!schedule::cpu_forward_legal(forward.tile.q_rows, forward.tile.kv_rows)) {
    return {StatusCode::invalid_argument,
            fmt::format("plan.tile is {}x{}; accepted: 1 to {} queries by a multiple of {} keys up "
                        "to {}",
                        forward.tile.q_rows, forward.tile.kv_rows, schedule::kCpuMaxQueryRows,
                        schedule::kCpuKeyMultiple, schedule::kCpuMaxKeyRows)};
  }
  if (forward.kv_splits < 1) {
    return {StatusCode::invalid_argument,
            fmt::format("plan.kv_splits is {}; accepted: 1 or more", forward.kv_splits)};
  }
  return {};
}

}  // namespace

Status run_forward(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options) {
  const AttentionSpec& spec = plan.problem.spec();
  const ForwardPlan& forward = plan.forward();
  Status status = check_tile(forward);
  if (!status.ok()) return status;
  const Result<const Kernels*> kernels = find_kernels(forward.isa, spec.dtype);
  if (!kernels.ok()) return kernels.status();
  ForwardCall call{plan.problem, tensors, forward.tile, forward.kv_splits};
  const Index tasks = call.tasks();
  if (tasks == 0) return {};
  Index workers = schedule::clamp(forward.workers, 1, tasks * call.kv_splits);
  Executor* executor = options.executor;
  if (executor == nullptr) {
    // An engine's threads are awake anyway; ours are not woken for less than they cost.
    const double work =
        plan.problem.visible_scores() * static_cast<double>(spec.qk_dim + spec.v_dim);
    workers =
        schedule::clamp(static_cast<Index>(std::min(1e6, work / kLeastWorkPerWorker)), 1, workers);
    if (workers > 1) executor = &default_executor();
  }

  const Index scratch_bytes = schedule::cpu_forward_scratch_bytes(
      forward.tile.q_rows, forward.tile.kv_rows, spec.qk_dim, spec.v_dim);
  const Index partial_bytes =
      schedule::cpu_forward_partial_bytes(plan.problem.lse_rows(), spec.v_dim, call.kv_splits);
  const Index needed = workers * scratch_bytes + partial_bytes;
  AlignedBytes allocated;
  auto* memory = static_cast<std::byte*>(options.workspace.data);
  if (memory == nullptr || static_cast<Index>(options.workspace.bytes) < needed) {
    memory = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(needed), std::align_val_t{64}));
    allocated.reset(memory);
  }
  call.partials = reinterpret_cast<float*>(memory + workers * scratch_bytes);

  TaskQueue queue(tasks * call.kv_splits, options.progress, executor);
  queue.run(workers, [&](Index index, Index worker) {
    const ForwardTask task = make_task(call, index / call.kv_splits, index % call.kv_splits);
    if (task.rows() > 0) (*kernels)->forward(call, task, memory + worker * scratch_bytes);
  });
  if (call.kv_splits > 1) {
    const std::function<void(double)> silent;
    TaskQueue merge(tasks, silent, executor);
    merge.run(schedule::min(workers, tasks), [&](Index index, Index) {
      const ForwardTask task = make_task(call, index, 0);
      if (task.rows() > 0) (*kernels)->merge(call, task);
    });
  }
  return {};
}

}  // namespace tilewright::cpu
