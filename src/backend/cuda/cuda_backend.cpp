// src/backend/cuda/cuda_backend.cpp: runs plans on an NVIDIA GPU, in the caller's context and
// stream.
#include "backend/cuda/cuda_backend.h"

#include <fmt/format.h>

#include "backend/cuda/device.h"
#include "backend/cuda/hopper_forward.h"
#include "plan/hopper_forward.h"

namespace tilewright::cuda {
namespace {

Result<Runtime> runtime() {
  if (!driver().ok()) return driver().status();
  return Runtime{*driver(), kernel_cache(*driver())};
}

}  // namespace

Status run_forward(const Plan& plan, const AttentionTensors& tensors, const RunOptions& options) {
  const Result<Runtime> opened = runtime();
  if (!opened.ok()) return opened.status();
  return run_hopper_forward(*opened, plan, tensors, options);
}

Status prepare(const Plan& plan) {
  const Result<Runtime> opened = runtime();
  if (!opened.ok()) return opened.status();
  return prepare_hopper_forward(*opened, plan);
}

Status init_workspace(const Plan& plan, const Workspace& workspace, void* stream) {
  const Result<Runtime> opened = runtime();
  if (!opened.ok()) return opened.status();
  if (workspace.data == nullptr ||
      workspace.bytes < static_cast<std::size_t>(kHopperControlBytes)) {
    return {StatusCode::invalid_argument,
            fmt::format("workspace is {} bytes at {}; accepted: {} bytes of device memory",
                        workspace.bytes, workspace.data, workspace_bytes(plan))};
  }
  const DriverApi& api = opened->driver;
  return check(api,
               api.memory_set_async(reinterpret_cast<DevicePointer>(workspace.data), 0,
                                    static_cast<std::size_t>(kHopperControlBytes),
                                    static_cast<StreamHandle>(stream)),
               "zeroing the workspace's control block");
}

Result<Machine> this_gpu(const std::vector<Machine>& profiles) {
  if (!driver().ok()) return driver().status();
  const DriverApi& api = *driver();
  const Result<DeviceOrdinal> device = current_device(api);
  if (!device.ok()) return device.status();
  const Result<DeviceFacts> facts = query_device(api, *device);
  if (!facts.ok()) return facts.status();
  return overlay(matching_profile(profiles, *facts), *facts);
}

}  // namespace tilewright::cuda
