// cli/files/array.cpp: arrays from the bytes of a file.
#include "files/array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "files/buffer.h"

namespace tilewright::files {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read on little-endian hosts");

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape, bool fortran_order) {
  const std::size_t rank = shape.size();
  std::vector<std::int64_t> strides(rank, 0);
  // An empty array has no neighbours, and its other extents may be too large to multiply.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return strides;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t axis = fortran_order ? i : rank - 1 - i;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

template <typename Bits>
Bits load_bits(const std::byte* from, bool big_endian) {
  Bits bits{};
  std::memcpy(&bits, from, sizeof bits);
  if (!big_endian) return bits;
  if constexpr (sizeof(Bits) == 2) return __builtin_bswap16(bits);
  if constexpr (sizeof(Bits) == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof(Bits) == 8) return __builtin_bswap64(bits);
  return bits;
}

template <typename Bits>
void swap_bytes(const std::byte* from, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = load_bits<Bits>(from + i * sizeof(Bits), true);
    std::memcpy(to + i * sizeof(Bits), &bits, sizeof bits);
  }
}

Status round_to_f32(const std::string& label, const std::byte* from, std::size_t count,
                    bool big_endian, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto wide = std::bit_cast<double>(load_bits<std::uint64_t>(from + i * 8, big_endian));
    const auto narrow = static_cast<float>(wide);
    if (std::isinf(narrow) && !std::isinf(wide)) {
      return {StatusCode::invalid_argument,
              fmt::format("{}: element {} is {}; accepted: values within f32, to which f64 is "
                          "rounded",
                          label, i, wide)};
    }
    std::memcpy(to + i * 4, &narrow, 4);
  }
  return {};
}

// Element bytes in the host's order and at an address fit for their type.
Status copy_elements(const Array& array, StoredType type, const std::byte* from, std::size_t count,
                     std::byte* to) {
  if (type.f64) return round_to_f32(array.label, from, count, type.big_endian, to);
  if (!type.big_endian) {
    if (count > 0) std::memcpy(to, from, count * type.bytes());
  } else if (type.bytes() == 2) {
    swap_bytes<std::uint16_t>(from, count, to);
  } else if (type.bytes() == 4) {
    swap_bytes<std::uint32_t>(from, count, to);
  } else {
    swap_bytes<std::uint64_t>(from, count, to);
  }
  return {};
}

}  // namespace

std::int64_t Array::elements() const noexcept {
  return count_elements(shape).value_or(0);
}

std::int64_t Array::bytes() const noexcept {
  return elements() * static_cast<std::int64_t>(size_bytes(dtype));
}

bool Array::contiguous() const noexcept {
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] > 1 && strides[axis] != stride) return false;
    stride *= shape[axis];
  }
  return true;
}

std::optional<std::int64_t> count_elements(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) empty = true;
  }
  if (empty) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (count > kMaxElements / extent) return std::nullopt;
    count *= extent;
  }
  return count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                     shape.size() == 1 ? "," : "");
}

Result<Array> make_array(std::string label, StoredType type, std::vector<std::int64_t> shape,
                         bool fortran_order, std::span<const std::byte> bytes,
                         std::shared_ptr<const void> owner) {
  Array array;
  array.label = std::move(label);
  array.dtype = type.f64 ? DType::f32 : type.dtype;
  array.strides = strides_of(shape, fortran_order);
  array.shape = std::move(shape);
  const std::size_t element = size_bytes(array.dtype);
  const bool aligned = std::bit_cast<std::uintptr_t>(bytes.data()) % element == 0;
  const bool swapped = type.big_endian && type.bytes() > 1;
  if (aligned && !swapped && !type.f64) {
    array.data = bytes.data();
    array.owner = std::move(owner);
    return array;
  }
  const std::size_t count = bytes.size() / type.bytes();
  Result<std::shared_ptr<std::byte>> buffer = zeroed_buffer(count * element);
  if (!buffer.ok()) return buffer.status();
  type.big_endian = swapped;
  Status status = copy_elements(array, type, bytes.data(), count, buffer->get());
  if (!status.ok()) return status;
  if (type.f64) array.converted_from = "f64";
  array.data = buffer->get();
  array.owner = std::move(*buffer);
  return array;
}

}  // namespace tilewright::files
