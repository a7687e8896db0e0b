// cli/files/file_bytes.cpp: the bytes of an input file, mapped rather than read into memory.
#include "files/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "files/error_text.h"

namespace tilewright::files {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Status refuse(const std::string& path, std::string_view why) {
  return {StatusCode::invalid_argument,
          fmt::format("{}: {}; accepted: a regular file that may be read", path, why)};
}

}  // namespace

Result<std::shared_ptr<const FileBytes>> FileBytes::open(const std::string& path) {
  // O_NONBLOCK: a pipe is refused below rather than waited for.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return refuse(quote(path), error_text(errno));
  struct stat status {};
  const int stat_failed = fstat(file, &status);
  if (stat_failed != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return refuse(quote(path), stat_failed != 0 ? error_text(errno) : kind_of(status.st_mode));
  }
  std::shared_ptr<FileBytes> opened(new FileBytes);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (address == MAP_FAILED) {
      const int error = errno;
      close(file);
      return Status{StatusCode::io_error, fmt::format("{}: its {} bytes could not be mapped: {}",
                                                      quote(path), size, error_text(error))};
    }
    opened->bytes_ = {static_cast<const std::byte*>(address), size};
    opened->mapped_ = true;
  }
  close(file);
  return std::shared_ptr<const FileBytes>(std::move(opened));
}

std::shared_ptr<const FileBytes> FileBytes::of(std::vector<std::byte> bytes) {
  std::shared_ptr<FileBytes> held(new FileBytes);
  held->memory_ = std::move(bytes);
  held->bytes_ = held->memory_;
  return held;
}

FileBytes::~FileBytes() {
  if (mapped_) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tilewright::files
