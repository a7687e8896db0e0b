// cli/files/npy_header.h: the header of a .npy file: a Python dict literal with three known keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/array.h"
#include "tilewright/status.h"

namespace tilewright::files {

struct NpyHeader {
  StoredType type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  ///< where the elements begin in the file
};

/// Checks everything up to the elements: magic, version, lengths, syntax, keys, type and shape.
Result<NpyHeader> parse_npy_header(const std::string& label, std::span<const std::byte> file);

/// Magic, version 1.0 and a header padded so that elements begin at a multiple of 64 bytes.
std::string npy_header_text(DType dtype, std::span<const std::int64_t> shape);

}  // namespace tilewright::files
