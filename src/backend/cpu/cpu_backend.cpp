// src/backend/cpu/cpu_backend.cpp: runs forward plans on this machine's cores.
#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "backend/cpu/kernels.h"
#include "backend/cpu/task_queue.h"

namespace tilewright::cpu {
namespace {

// Below this many multiply-adds a worker, waking it costs more than it saves.
constexpr double kLeastWorkPerWorker = 1e6;

Status check_plan(const ForwardPlan& forward) {
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
  if (forward.schedule == Schedule::kv_outer) {
    return {StatusCode::unsupported,
            fmt::format("plan.schedule is {}; accepted on CPUs: {}, {}", name(forward.schedule),
                        name(Schedule::q_outer), name(Schedule::standard))};
  }
  return {};
}

Workers choose_workers(const Plan& plan, const RunOptions& options, Index tasks) {
  Workers workers{schedule::clamp(plan.forward().workers, 1, tasks), options.executor};
  if (workers.executor != nullptr) return workers;
  // An engine's threads are awake anyway; ours are not woken for less than they cost.
  const AttentionSpec& spec = plan.problem.spec();
  const double work = plan.problem.visible_scores() * static_cast<double>(spec.qk_dim + spec.v_dim);
  const auto useful = static_cast<Index>(std::min(1e6, work / kLeastWorkPerWorker));
  workers.count = schedule::clamp(useful, 1, workers.count);
  if (workers.count > 1) workers.executor = &default_executor();
  return workers;
}

/// The caller's workspace, or memory allocated for this call.
class Memory {
 public:
  Status take(const Workspace& lent, Index bytes) {
    data_ = static_cast<std::byte*>(lent.data);
    if (data_ != nullptr && static_cast<Index>(lent.bytes) >= bytes) return {};
    const double have =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (have > 0 && static_cast<double>(bytes) > have) {
      return {StatusCode::out_of_memory,
              fmt::format("the workspace is {} bytes; accepted: at most the {:.0f} bytes of memory "
                          "that this machine has",
                          bytes, have)};
    }
    data_ = static_cast<std::byte*>(
        ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{64}));
    owned_.reset(data_);
    return {};
  }
  std::byte* data() const { return data_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> owned_;
  std::byte* data_ = nullptr;
};

// Where heads lie closer than tokens, a row of K is a small part of a page: few rows of several
// heads then share a walk over the keys, so that memory is read as it lies. No more heads than
// leave every worker a task.
Index heads_together(const ForwardCall& call, Index workers) {
  const AttentionSpec& spec = call.problem.spec();
  const Strides& k = call.problem.k();
  const Index rows = call.problem.q_len() * call.problem.group();
  if (call.token_tiles() != 1 || call.heads_per_tile != call.problem.group() ||
      std::abs(k.head) >= std::abs(k.token) || spec.batch * spec.kv_heads == 0) {
    return 1;
  }
  const Index most = schedule::max(1, schedule::kCpuScoreRows / schedule::max(1, rows));
  const Index parts = schedule::max(schedule::ceil_div(spec.kv_heads, most),
                                    schedule::ceil_div(workers, spec.batch * call.kv_splits));
  return schedule::ceil_div(spec.kv_heads, schedule::min(parts, spec.kv_heads));
}

Status run_tiled(const Plan& plan, const Kernels& kernels, const AttentionTensors& tensors,
                 const RunOptions& options) {
  const AttentionSpec& spec = plan.problem.spec();
  ForwardCall call{plan.problem, tensors, plan.forward().tile};
  call.heads_per_tile = schedule::min(plan.problem.group(), call.tile.q_rows);
  call.kv_splits = plan.forward().kv_splits;
  call.kv_heads_per_task = heads_together(call, plan.forward().workers);
  const Index tasks = call.tasks();
  if (tasks == 0) return {};
  const Workers workers = choose_workers(plan, options, tasks * call.kv_splits);
  const Index scratch_bytes = schedule::cpu_forward_scratch_bytes(
      call.tile.q_rows, call.tile.kv_rows, spec.qk_dim, spec.v_dim, kernels.operand_bytes);
  Memory memory;
  Status status = memory.take(
      options.workspace,
      workers.count * scratch_bytes +
          schedule::cpu_forward_partial_bytes(plan.problem.lse_rows(), spec.v_dim, call.kv_splits));
  if (!status.ok()) return status;
  call.partials = reinterpret_cast<float*>(memory.data() + workers.count * scratch_bytes);

  run_tasks(workers, tasks * call.kv_splits, options.progress, [&](Index index, Index worker) {
    const ForwardTask task = make_task(call, index / call.kv_splits, index % call.kv_splits);
    if (task.rows() > 0) kernels.forward(call, task, memory.data() + worker * scratch_bytes);
  });
  if (call.kv_splits > 1) {
    run_tasks(workers, tasks, {}, [&](Index index, Index) {
      const ForwardTask task = make_task(call, index, 0);
      if (task.rows() > 0) kernels.merge(call, task);
    });
  }
  return {};
}

Status run_standard(const Plan& plan, const Kernels& kernels, const AttentionTensors& tensors,
                    const RunOptions& options) {
  const AttentionSpec& spec = plan.problem.spec();
  ForwardCall call{plan.problem, tensors, plan.forward().tile};
  const Index token_tiles = call.token_tiles();
  const Index heads = spec.batch * spec.heads;
  if (token_tiles * heads == 0) return {};
  const Workers workers = choose_workers(plan, options, token_tiles);
  const Index scratch_bytes = schedule::cpu_forward_scratch_bytes(
      call.tile.q_rows, call.tile.kv_rows, spec.qk_dim, spec.v_dim, kernels.operand_bytes);
  const Index score_bytes =
      schedule::cpu_standard_score_bytes(plan.problem.q_len(), plan.problem.kv_len());
  Memory memory;
  Status status = memory.take(options.workspace, workers.count * scratch_bytes + score_bytes);
  if (!status.ok()) return status;
  call.score_stride = schedule::cpu_standard_score_stride(plan.problem.kv_len());
  call.scores = reinterpret_cast<float*>(memory.data() + workers.count * scratch_bytes);
  call.row_ends = call.scores + plan.problem.q_len() * call.score_stride;

  for (Index head = 0; head < heads; ++head) {
    const auto pass = [&](auto work) {
      run_tasks(workers, token_tiles, {}, [&](Index index, Index worker) {
        const ForwardTask task = make_task(call, head * token_tiles + index, 0);
        if (task.rows() > 0) work(task, memory.data() + worker * scratch_bytes);
      });
    };
    pass([&](const ForwardTask& task, std::byte* mine) { kernels.scores(call, task, mine); });
    pass([&](const ForwardTask& task, std::byte*) { kernels.softmax(call, task); });
    pass([&](const ForwardTask& task, std::byte* mine) { kernels.output(call, task, mine); });
    if (options.progress) {
      options.progress(static_cast<double>(head + 1) / static_cast<double>(heads));
    }
  }
  return {};
}

}  // namespace

Status run_forward(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options) {
  const ForwardPlan& forward = plan.forward();
  Status status = check_plan(forward);
  if (!status.ok()) return status;
  const Result<const Kernels*> kernels = find_kernels(forward.isa, plan.problem.spec().dtype);
  if (!kernels.ok()) return kernels.status();
  return forward.schedule == Schedule::standard ? run_standard(plan, **kernels, tensors, options)
                                                : run_tiled(plan, **kernels, tensors, options);
}

}  // namespace tilewright::cpu
