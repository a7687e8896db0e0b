// cli/memory_bandwidth.h: how fast this machine's cores read memory together, by reading it.
#pragma once

#include "tilewright/machine.h"

namespace tilewright::cli {

/// Takes about a quarter of a second. Absent where memory for it cannot be had.
Figure measure_memory_bandwidth(const Machine& machine);

}  // namespace tilewright::cli
