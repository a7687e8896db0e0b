// src/plan/kernel_model.cpp: which kernel family a problem has on a machine.
#include "plan/kernel_model.h"

#include <fmt/format.h>

#include "plan/time_model.h"

namespace tilewright {
namespace {

/// A profile that gives rates, but none for this type, has no unit for it.
Status check_dtype(const AttentionProblem& problem, const Machine& machine) {
  const DType dtype = problem.spec().dtype;
  if (matmul_figure(machine, dtype).known()) return {};
  std::string accepted;
  for (const DType other : {DType::f32, DType::bf16, DType::f16}) {
    if (!matmul_figure(machine, other).known()) continue;
    accepted += fmt::format("{}{}", accepted.empty() ? "" : ", ", name(other));
  }
  if (accepted.empty()) return {};  // nothing is known of its rates: planned by traffic alone
  return {StatusCode::unsupported,
          fmt::format("dtype is {}, for which machine \"{}\" states no rate; accepted: {}",
                      name(dtype), machine.id, accepted)};
}

}  // namespace

Result<std::unique_ptr<KernelModel>> make_kernel_model(const AttentionProblem& problem,
                                                       const Machine& machine,
                                                       const PlanOptions& options) {
  Status status = check_dtype(problem, machine);
  if (!status.ok()) return status;
  // Orders that no kernel walks are for the simulator.
  const Schedule schedule = options.schedule.value_or(Schedule::q_outer);
  if (machine.kind == MachineKind::cpu && schedule != Schedule::kv_outer) {
    return make_cpu_model(problem, machine, options);
  }
  if (machine.arch.starts_with("sm_90") && schedule == Schedule::q_outer) {
    return make_hopper_model(problem, machine);
  }
  return make_profile_model(problem, machine);
}

}  // namespace tilewright
