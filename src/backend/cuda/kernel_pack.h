// src/backend/cuda/kernel_pack.h: the file of compiled kernels that is shipped with the library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cubin.h"
#include "tilewright/status.h"

namespace tilewright::cuda {

/// A pack's file name; one file an architecture.
inline constexpr const char* kPackFileName = "tilewright-sm_90a.pack";

struct PackHeader {
  std::string source_digest;  ///< embedded_digest() of the library it was built for
  std::string architecture;
  std::string compiler_version;  ///< "13.5"

  bool operator==(const PackHeader&) const = default;
};

struct PackedKernel {
  std::string key;  ///< KernelSource::key()
  std::string cubin;
  CubinFacts facts;
};

/// An index, read once, and machine code, read as it is asked for.
class KernelPack {
 public:
  /// Reads the index; io_error when the file is absent or damaged.
  static Result<KernelPack> open(const std::filesystem::path& file);

  /// Opens the first candidate that exists. unavailable when there is none, or when it was built
  /// from other sources than `source_digest` or for another architecture.
  static Result<KernelPack> find(const std::vector<std::filesystem::path>& candidates,
                                 std::string_view source_digest);

  /// The machine code; nothing if it is not in the pack, io_error if the file is damaged.
  Result<std::optional<std::string>> load(const std::string& key) const;

  bool contains(const std::string& key) const { return entries_.contains(key); }
  const PackHeader& header() const { return header_; }
  const std::filesystem::path& file() const { return file_; }

  struct Entry {
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t checksum = 0;
    CubinFacts facts;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::filesystem::path file_;
  PackHeader header_;
  std::map<std::string, Entry> entries_;
};

/// Writes a pack, replacing `file` in one step; returns its size in bytes.
Result<std::uint64_t> write_pack(const std::filesystem::path& file, const PackHeader& header,
                                 const std::vector<PackedKernel>& kernels);

}  // namespace tilewright::cuda
