// cli/files/file_bytes.h: the bytes of an input file, mapped rather than read into memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::files {

/// A whole file, read only. Pages are fetched on first use, so that a file larger than memory can
/// be read, and no copy of it is ever made.
class FileBytes {
 public:
  /// invalid_argument unless path is a regular file that may be read.
  static Result<std::shared_ptr<const FileBytes>> open(const std::string& path);
  /// The same interface over bytes in memory.
  static std::shared_ptr<const FileBytes> of(std::vector<std::byte> bytes);

  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  FileBytes() = default;

  std::span<const std::byte> bytes_;
  std::vector<std::byte> memory_;
  bool mapped_ = false;
};

}  // namespace tilewright::files
