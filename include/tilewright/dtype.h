// tilewright/dtype.h: the element types that tensors may hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tilewright {

/// Element type. f32, bf16 and f16 are operands and outputs; boolean is a mask (one byte, zero
/// means masked); i32 and i64 hold sequence lengths. Values are stable: the C ABI shares them.
enum class DType : std::uint8_t { f32 = 0, bf16 = 1, f16 = 2, boolean = 3, i32 = 4, i64 = 5 };

/// Size of one element in bytes.
constexpr std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::boolean:
      return 1;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
  }
  return 0;
}

/// The type's name: "f32", "bf16", "f16", "bool", "i32", "i64".
constexpr std::string_view name(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::boolean:
      return "bool";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
  }
  return "unknown";
}

}  // namespace tilewright
