// src/backend/cuda/device.h: what the driver tells of a GPU, and how it overrides a Machine's
// profile.
#pragma once

#include <span>
#include <string>

#include "backend/cuda/driver_api.h"
#include "tilewright/machine.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

/// Figures of one GPU as the driver reports them; 0 where it does not say.
struct DeviceFacts {
  std::string name;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  int multiprocessors = 0;
  int shared_bytes_per_block_optin = 0;
  int registers_per_multiprocessor = 0;  ///< of 32 bits
  int l2_bytes = 0;
  double clock_hz = 0;
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;  ///< from the memory's clock and width, two transfers a clock
};

Result<DeviceFacts> query_device(const DriverApi& api, DeviceOrdinal device);

/// The device of the calling thread's current context, or 0 if it has none.
Result<DeviceOrdinal> current_device(const DriverApi& api);

/// `profile` with every figure that the driver gave, marked as queried.
Machine overlay(Machine profile, const DeviceFacts& facts);

/// The profile that fits best: same architecture, model named in the device's name, then nearest in
/// multiprocessors; a blank Machine when none does.
Machine matching_profile(std::span<const Machine> profiles, const DeviceFacts& facts);

}  // namespace tilewright::cuda
