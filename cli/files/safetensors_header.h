// cli/files/safetensors_header.h: the JSON header of a .safetensors file, checked as it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright::files {

/// One tensor as the header states it. Its type may be one that Tilewright does not read.
struct SafetensorsEntry {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;  ///< offsets in the file
  std::size_t end = 0;
};

using SafetensorsEntries = std::map<std::string, SafetensorsEntry>;

/// Checks the length, the JSON, every entry, and that the tensors cover the data without overlap,
/// gap or remainder.
Result<SafetensorsEntries> parse_safetensors_header(const std::string& label,
                                                    std::span<const std::byte> file);

}  // namespace tilewright::files
