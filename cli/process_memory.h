// cli/process_memory.h: how much memory this process has held at most.
#pragma once

#include <cstdint>

namespace tilewright::cli {

/// Peak resident bytes of this program since it started, mapped files that were read included; 0
/// where the system does not tell. (ru_maxrss would also count the parent before exec.)
std::int64_t peak_resident_bytes();

}  // namespace tilewright::cli
