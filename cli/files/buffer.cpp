// cli/files/buffer.cpp: zeroed memory for an array.
#include "files/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

namespace tilewright::files {

Result<std::shared_ptr<std::byte>> zeroed_buffer(std::size_t bytes) {
  const std::size_t mapped = std::max<std::size_t>(bytes, 1);
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return Status{StatusCode::out_of_memory, fmt::format("{} bytes could not be allocated", bytes)};
  }
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(address),
                                    [mapped](std::byte* data) { munmap(data, mapped); });
}

}  // namespace tilewright::files
