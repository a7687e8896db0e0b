// cli/process_memory.cpp: peak memory, from /proc.
#include "process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace tilewright::cli {

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    std::int64_t kibibytes = 0;
    std::istringstream(line.substr(6)) >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace tilewright::cli
