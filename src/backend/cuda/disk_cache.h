// src/backend/cuda/disk_cache.h: compiled kernels kept in a folder that many processes share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::cuda {

/// A content-addressed folder: the file's name is derived from the key, and the file repeats the
/// key and a checksum, so that neither a collision nor damage can hand out a wrong kernel. Files
/// appear whole, by renaming; two processes that write one entry both succeed. Every fault is a
/// miss, never an error.
class DiskCache {
 public:
  /// An empty folder means no cache.
  explicit DiskCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// The entry's bytes; nothing if it is absent or damaged (a damaged file is removed).
  std::optional<std::string> load(std::string_view key) const;

  /// Writes the entry. A failure (read-only or full folder) leaves no file and says why.
  Status store(std::string_view key, std::string_view payload) const;

  struct Entry {
    std::filesystem::path file;
    std::string key;  ///< Empty when the file is damaged.
    std::uintmax_t size_bytes = 0;
  };
  std::vector<Entry> list() const;

  /// Removes every entry and unfinished file; returns how many.
  Result<int> clear() const;

  std::filesystem::path file_of(std::string_view key) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tilewright::cuda
