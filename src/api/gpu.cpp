// src/api/gpu.cpp: this_gpu(), prepare() and init_workspace(): what a caller does before the first
// run.
#include <fmt/format.h>

#include <exception>

#include "backend/cuda/cuda_backend.h"
#include "tilewright/run.h"

namespace tilewright {

Result<Machine> this_gpu() {
  std::vector<Machine> profiles;
  for (const std::string& id : machine_profile_ids()) {
    Result<Machine> profile = machine_profile(id);
    if (profile.ok()) profiles.push_back(std::move(profile).value());
  }
  return cuda::this_gpu(profiles);
}

Status prepare(const Plan& plan) {
  if (plan.family != KernelFamily::hopper_forward) return {};
  // Nothing leaves the library as an exception.
  try {
    return cuda::prepare(plan);
  } catch (const std::exception& error) {
    return {StatusCode::internal, error.what()};
  }
}

Status init_workspace(const Plan& plan, const Workspace& workspace, void* stream) {
  if (workspace.bytes < workspace_bytes(plan)) {
    return {StatusCode::invalid_argument, fmt::format("workspace.bytes is {}; accepted: {} or more",
                                                      workspace.bytes, workspace_bytes(plan))};
  }
  if (plan.family == KernelFamily::hopper_forward)
    return cuda::init_workspace(plan, workspace, stream);
  return {};
}

}  // namespace tilewright
