// tilewright/run.h: runs a plan on the caller's tensors, workspace, threads or stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "tilewright/attention.h"
#include "tilewright/plan.h"
#include "tilewright/status.h"

namespace tilewright {

/// Threads that an engine lends. The default executor uses OpenMP and runs serially when nested.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Workers that may run at once.
  virtual std::int64_t concurrency() const noexcept = 0;
  /// Calls work(worker) once for each worker in [0, workers), possibly at once, and returns when
  /// all are done. workers <= concurrency() gives each a thread of its own; more must still all be
  /// called.
  virtual void run_workers(std::int64_t workers,
                           const std::function<void(std::int64_t worker)>& work) = 0;
};

/// The OpenMP executor that run() uses when given none.
Executor& default_executor() noexcept;

/// Scratch memory lent by the caller. 64-byte aligned; contents need no preparation on CPUs.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

struct RunOptions {
  Workspace workspace;           ///< empty: allocated for the call (CPU only)
  Executor* executor = nullptr;  ///< CPU; null: default_executor()
  void* stream = nullptr;        ///< GPU: the caller's CUstream
  /// CPU: called now and then from one worker with the fraction done, in [0, 1]; may be empty.
  std::function<void(double fraction)> progress;
};

/// Bytes of workspace that run() needs for this plan.
std::size_t workspace_bytes(const Plan& plan) noexcept;

/// Computes O (and LSE) as the plan says. Checks addresses, alignment and workspace size only; the
/// problem was checked when it was made. Inputs must not overlap outputs. Rows of O and LSE past a
/// sequence's length are not written.
Status run(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options = {});

/// Problem, plan and run in one call on this machine's CPU, for those who want no more control.
Status attention(const AttentionSpec& spec, const AttentionTensors& tensors);

}  // namespace tilewright
