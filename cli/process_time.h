// cli/process_time.h: processor time of this process, all threads together.
#pragma once

#include <ctime>

namespace tilewright::cli {

inline double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace tilewright::cli
