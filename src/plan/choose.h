// src/plan/choose.h: the pure function behind plan().
#pragma once

#include "tilewright/plan.h"

namespace tilewright {

/// Same problem, machine and options give the same plan, on any host.
Result<Plan> choose_plan(const AttentionProblem& problem, const Machine& machine,
                         const PlanOptions& options);

}  // namespace tilewright
