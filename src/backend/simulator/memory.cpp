// src/backend/simulator/memory.cpp: the capacity check.
#include "backend/simulator/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::simulator {

void Memory::take(const std::string& what, std::int64_t bytes) {
  if (capacity_bytes_ > 0 && used_bytes_ + bytes > capacity_bytes_) {
    throw CapacityExceeded(fmt::format(
        "{} of {} bytes does not fit \"{}\": {} of its {} bytes are taken, so it needs {}", what,
        bytes, name_, used_bytes_, capacity_bytes_, used_bytes_ + bytes));
  }
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
}

}  // namespace tilewright::simulator
