// cli/files/output_file.h: a file that appears whole, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tilewright/status.h"

namespace tilewright::files {

/// Written under no name, or a temporary one, beside its path, then renamed: readers never see half
/// a file, and what was there before stays until commit(). Devices and pipes are written directly.
class OutputFile {
 public:
  /// Opens early, so that a path that cannot be written is refused before any work is done, and
  /// reserves the bytes, so that a full disk is too. invalid_argument, or io_error on a full disk.
  static Result<OutputFile> create(const std::string& path, std::int64_t bytes);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Status write(const void* data, std::size_t bytes);
  /// Flushes to disk and gives the file its name.
  Status commit();

  const std::string& path() const noexcept { return path_; }

 private:
  OutputFile() = default;
  Status failed(const char* what, int error) const;
  Status give_name();

  std::string path_;       ///< as the caller gave it
  std::string target_;     ///< with links resolved: renaming replaces the file, not the link
  std::string temporary_;  ///< name to rename from; empty while the file has none
  int file_ = -1;
  bool direct_ = false;  ///< a device or pipe
  std::size_t written_ = 0;
};

}  // namespace tilewright::files
