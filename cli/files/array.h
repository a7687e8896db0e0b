// cli/files/array.h: an array that was read from a file: type, shape, strides, and where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/status.h"

namespace tilewright::files {

/// Usable as long as a copy of it lives.
struct Array {
  std::string label;  ///< for messages, such as "'q.npy'"
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements; Fortran order is a matter of strides
  const void* data = nullptr;         ///< aligned to one element at least
  std::string converted_from;         ///< the file's type, where values were rounded to f32: "f64"
  std::shared_ptr<const void> owner;  ///< keeps data alive

  std::int64_t elements() const noexcept;
  std::int64_t bytes() const noexcept;
  /// True when elements lie in C order without gaps.
  bool contiguous() const noexcept;
};

/// How a file stores one element.
struct StoredType {
  DType dtype = DType::f32;  ///< as which it is read
  bool big_endian = false;
  bool f64 = false;  ///< read as f32, rounded; values beyond f32 are refused

  std::size_t bytes() const noexcept { return f64 ? 8 : size_bytes(dtype); }
};

/// Elements of a shape; nothing if an extent is negative or the count passes 2^62.
std::optional<std::int64_t> count_elements(std::span<const std::int64_t> shape);

/// "(2, 3)"
std::string shape_text(std::span<const std::int64_t> shape);

/// Makes an array of exactly the stored bytes: in place where type, byte order and alignment allow,
/// else converted into memory of its own. bytes.size() must be count_elements(shape) *
/// type.bytes().
Result<Array> make_array(std::string label, StoredType type, std::vector<std::int64_t> shape,
                         bool fortran_order, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner);

}  // namespace tilewright::files
