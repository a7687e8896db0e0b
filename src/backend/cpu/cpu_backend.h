// src/backend/cpu/cpu_backend.h: runs forward plans on this machine's cores.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewright/run.h"

namespace tilewright::cpu {

/// Computes the plan on the executor's workers. Addresses, alignment and the workspace have been
/// checked.
Status run_forward(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options);

/// Instruction sets that this build has and this CPU runs, the default last; "portable" is always
/// first.
std::vector<std::string> instruction_sets();

}  // namespace tilewright::cpu
