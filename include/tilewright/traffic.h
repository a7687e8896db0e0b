// tilewright/traffic.h: bytes that cross between fast and slow memory, by tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright {

/// Bytes of one tensor that cross the boundary, each way.
struct TensorTraffic {
  std::string tensor;  ///< "q", "k", "v", "o", "lse", "s" (scores), "p" (probabilities), "partials"
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;

  bool operator==(const TensorTraffic&) const = default;
};

/// Bytes that cross between on-chip stores and the memory behind them. Tiled attention still moves
/// Theta(N^2 d^2 / M) bytes: its footprint is linear, its traffic is not, though while K and V fit
/// a last-level cache the traffic seen by DRAM looks linear.
struct Traffic {
  std::vector<TensorTraffic> tensors;

  std::int64_t bytes_read() const noexcept {
    std::int64_t sum = 0;
    for (const TensorTraffic& t : tensors) sum += t.bytes_read;
    return sum;
  }
  std::int64_t bytes_written() const noexcept {
    std::int64_t sum = 0;
    for (const TensorTraffic& t : tensors) sum += t.bytes_written;
    return sum;
  }
  std::int64_t bytes() const noexcept { return bytes_read() + bytes_written(); }

  bool operator==(const Traffic&) const = default;
};

}  // namespace tilewright
