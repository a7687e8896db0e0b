// src/backend/cuda/device_session.h: a context, a stream and memory of one GPU, released at the
// end.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/cuda/driver.h"

namespace tilewright::cuda {

/// For tools and tests: a library caller brings these of its own. Makes the first GPU's primary
/// context current for the calling thread as long as it lives.
class DeviceSession {
 public:
  static Result<DeviceSession> open();

  DeviceSession(DeviceSession&& other) noexcept;
  DeviceSession& operator=(DeviceSession&&) = delete;
  ~DeviceSession();

  const DriverApi& api() const { return *api_; }
  StreamHandle stream() const { return stream_; }
  std::size_t allocated_bytes() const { return allocated_bytes_; }

  /// Device memory that is freed with the session; null for no bytes.
  Result<void*> allocate(std::size_t bytes);
  Status copy_to_device(void* target, const void* source, std::size_t bytes);
  /// Waits for the stream.
  Status copy_to_host(void* target, const void* source, std::size_t bytes);
  Status synchronize();

  /// Milliseconds that the device spends on what `work` puts on the stream.
  template <typename Work>
  Result<float> time_ms(Work&& work) {
    Status status = check(*api_, api_->event_record(begin_, stream_), "recording an event");
    if (status.ok()) status = work();
    if (status.ok()) status = check(*api_, api_->event_record(end_, stream_), "recording an event");
    if (status.ok()) status = check(*api_, api_->event_synchronize(end_), "waiting for the GPU");
    float milliseconds = 0;
    if (status.ok()) {
      status =
          check(*api_, api_->event_elapsed_ms(&milliseconds, begin_, end_), "reading the time");
    }
    if (!status.ok()) return status;
    return milliseconds;
  }

 private:
  explicit DeviceSession(const DriverApi& api) : api_(&api) {}
  Status start();

  const DriverApi* api_;
  DeviceOrdinal device_ = 0;
  ContextHandle context_ = nullptr;
  ContextHandle previous_ = nullptr;
  StreamHandle stream_ = nullptr;
  EventHandle begin_ = nullptr;
  EventHandle end_ = nullptr;
  std::vector<DevicePointer> memory_;
  std::size_t allocated_bytes_ = 0;
};

}  // namespace tilewright::cuda
