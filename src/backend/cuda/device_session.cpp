// src/backend/cuda/device_session.cpp: a context, a stream and memory of one GPU, released at the
// end.
#include "backend/cuda/device_session.h"

#include <fmt/format.h>

#include <utility>

namespace tilewright::cuda {
namespace {

constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING

}  // namespace

Result<DeviceSession> DeviceSession::open() {
  if (!driver().ok()) return driver().status();
  DeviceSession session(*driver());
  Status status = session.start();
  if (!status.ok()) return status;
  return session;
}

Status DeviceSession::start() {
  int count = 0;
  Status status = check(*api_, api_->device_get_count(&count), "counting the GPUs");
  if (status.ok() && count == 0) status = {StatusCode::unavailable, "the CUDA driver sees no GPU"};
  if (status.ok()) status = check(*api_, api_->device_get(&device_, 0), "opening GPU 0");
  if (status.ok()) {
    status =
        check(*api_, api_->primary_context_retain(&context_, device_), "making a context on GPU 0");
  }
  if (status.ok()) {
    status = check(*api_, api_->context_get_current(&previous_), "reading the current context");
  }
  if (status.ok()) {
    status = check(*api_, api_->context_set_current(context_), "making the context current");
  }
  if (status.ok()) {
    status = check(*api_, api_->stream_create(&stream_, kNonBlockingStream), "making a stream");
  }
  if (status.ok()) status = check(*api_, api_->event_create(&begin_, 0), "making an event");
  if (status.ok()) status = check(*api_, api_->event_create(&end_, 0), "making an event");
  return status;
}

DeviceSession::DeviceSession(DeviceSession&& other) noexcept
    : api_(other.api_),
      device_(other.device_),
      context_(std::exchange(other.context_, nullptr)),
      previous_(std::exchange(other.previous_, nullptr)),
      stream_(std::exchange(other.stream_, nullptr)),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      allocated_bytes_(other.allocated_bytes_) {}

DeviceSession::~DeviceSession() {
  if (context_ == nullptr) return;
  if (stream_ != nullptr) (void)api_->stream_synchronize(stream_);
  for (const DevicePointer address : memory_) (void)api_->memory_free(address);
  if (begin_ != nullptr) (void)api_->event_destroy(begin_);
  if (end_ != nullptr) (void)api_->event_destroy(end_);
  if (stream_ != nullptr) (void)api_->stream_destroy(stream_);
  // The primary context is kept: releasing the last hold would unload every kernel that is cached.
  (void)api_->context_set_current(previous_);
}

Result<void*> DeviceSession::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  DevicePointer address = 0;
  Status status = check(*api_, api_->memory_allocate(&address, bytes),
                        fmt::format("allocating {} bytes of GPU memory", bytes));
  if (!status.ok()) return status;
  memory_.push_back(address);
  allocated_bytes_ += bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the driver names memory
  return reinterpret_cast<void*>(address);
}

Status DeviceSession::copy_to_device(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return {};
  return check(
      *api_,
      api_->copy_to_device_async(reinterpret_cast<DevicePointer>(target), source, bytes, stream_),
      fmt::format("copying {} bytes to the GPU", bytes));
}

Status DeviceSession::copy_to_host(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return {};
  Status status = check(
      *api_,
      api_->copy_to_host_async(target, reinterpret_cast<DevicePointer>(source), bytes, stream_),
      fmt::format("copying {} bytes from the GPU", bytes));
  return status.ok() ? synchronize() : status;
}

Status DeviceSession::synchronize() {
  return check(*api_, api_->stream_synchronize(stream_), "waiting for the GPU");
}

}  // namespace tilewright::cuda
