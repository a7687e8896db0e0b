// cli/measure.h: what only running finds out about this CPU: clock, peaks, exponentials, bandwidth.
#pragma once

#include <string>
#include <vector>

#include "tilewright/machine.h"

namespace tilewright::cli {

struct Measurement {
  Machine machine;  ///< with measured figures in place of derived and absent ones
  Figure copy_bytes_per_second;
  double f32_peak_share = 0;  ///< of clock times SIMD width; 0: not measured
  double bf16_peak_share = 0;
  std::vector<std::string> doubts;  ///< in words: what cannot be relied on
};

/// Takes a second or two. Times are processor time, so that other work on the machine counts less.
Measurement measure(Machine machine);

}  // namespace tilewright::cli
