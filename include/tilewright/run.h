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

/// Scratch memory lent by the caller. 64-byte aligned. On a GPU it is device memory, made ready
/// once by init_workspace; contents need no preparation on CPUs. One call in flight a workspace.
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

/// Compiles and loads what the plan needs, so that run() only launches: required before a run that
/// is captured in a CUDA graph, which otherwise answers not_prepared. Uses the current CUDA
/// context. Nothing to do on CPUs.
Status prepare(const Plan& plan);

/// Makes a workspace ready for any number of runs of plans that it is large enough for; on a GPU,
/// in the order of the stream. Every run leaves it ready.
Status init_workspace(const Plan& plan, const Workspace& workspace, void* stream = nullptr);

/// Computes O (and LSE) as the plan says. On a GPU: launches on the stream, in the current context,
/// and returns; tensors, lengths and workspace are device memory. Checks addresses, alignment and
/// workspace size only; the problem was checked when it was made. Inputs must not overlap outputs.
/// Rows of O and LSE past a sequence's length are not written.
Status run(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options = {});

/// Problem, plan and run in one call on this machine's CPU, for those who want no more control.
Status attention(const AttentionSpec& spec, const AttentionTensors& tensors);

}  // namespace tilewright
