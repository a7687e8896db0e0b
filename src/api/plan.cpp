// src/api/plan.cpp: plan(): the public face of the planner.
#include "plan/choose.h"

namespace tilewright {

Result<Plan> plan(const AttentionProblem& problem, const Machine& machine,
                  const PlanOptions& options) {
  return choose_plan(problem, machine, options);
}

}  // namespace tilewright
