// cli/timed_run.cpp: runs a plan on arrays in host memory, on this CPU or through copies on a GPU,
// and times it.
#include "timed_run.h"

#include <chrono>

#include "backend/cuda/staged_run.h"

namespace tilewright::cli {

AttentionSpec spec_for(const Machine& machine, const AttentionSpec& spec) {
  return machine.kind == MachineKind::gpu ? cuda::staged_spec(spec) : spec;
}

Result<std::vector<double>> timed_runs(const Plan& plan, const AttentionTensors& tensors,
                                       std::int64_t repeats,
                                       const std::function<void(double fraction)>& progress) {
  if (plan.family == KernelFamily::hopper_forward) {
    Result<cuda::StagedReport> report = cuda::run_staged(plan, tensors, static_cast<int>(repeats));
    if (!report.ok()) return report.status();
    return report->seconds;
  }
  RunOptions options;
  std::int64_t done = 0;
  if (progress) {
    options.progress = [&](double fraction) {
      progress((static_cast<double>(done) + fraction) / static_cast<double>(repeats));
    };
  }
  std::vector<double> seconds;
  for (; done < repeats; ++done) {
    const auto start = std::chrono::steady_clock::now();
    Status status = run(plan, tensors, options);
    if (!status.ok()) return status;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
  }
  return seconds;
}

}  // namespace tilewright::cli
