// tests/cuda/fake_driver.h: a CUDA driver without a GPU, that records what it is asked and can be
// told to fail.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/cuda/driver_api.h"

namespace tilewright::cuda {

/// State of the fake; reset() before each test. It loads whatever begins as ELF does.
struct FakeDriver {
  struct Launch {
    FunctionHandle function;
    unsigned grid[3];
    unsigned block[3];
    unsigned dynamic_shared_bytes;
    StreamHandle stream;
    bool overlaps;  ///< may begin before the kernel ahead of it ends
  };

  int version = 13000;
  unsigned long long current_context = 1;  ///< 0: none
  DriverResult init_result = DriverResult::success;
  DriverResult launch_result = DriverResult::success;
  DriverResult attribute_result = DriverResult::success;
  CaptureStatus capture = CaptureStatus::none;
  std::map<DeviceAttribute, int> attributes;
  std::string device_name = "NVIDIA H200";
  std::size_t memory_bytes = 0;

  std::atomic<int> loads{0};
  std::atomic<int> unloads{0};
  std::atomic<int> functions{0};
  std::map<FunctionHandle, int> granted_shared_bytes;
  std::vector<Launch> launches;
  std::mutex mutex;

  void reset();
};

FakeDriver& fake_driver();

/// An interface whose every entry point is the fake's.
DriverApi fake_driver_api();

/// Resolves the driver's names to the fake's functions, all but `missing`.
DriverResult resolve_fake(const char* symbol, void** address, int version, std::uint64_t flags,
                          int* symbol_status);
inline std::string missing_symbol;

}  // namespace tilewright::cuda
