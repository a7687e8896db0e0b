// tilewright/tensor.h: how an operand lies in memory, without its address.
#pragma once

#include <cstdint>
#include <optional>

#include "tilewright/dtype.h"

namespace tilewright {

/// Distances in elements between neighbours along each axis of a [batch, tokens, heads, dim]
/// operand. Any value is honoured, 0 (broadcast, inputs only) and negative included. In packed
/// batches the batch stride is not used: token indices run over the whole buffer.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t dim = 1;

  bool operator==(const Strides&) const = default;

  /// [batch, tokens, heads, dim], contiguous ("bshd").
  static constexpr Strides bshd(std::int64_t tokens, std::int64_t heads,
                                std::int64_t dim) noexcept {
    return {tokens * heads * dim, heads * dim, dim, 1};
  }
  /// [batch, heads, tokens, dim], contiguous ("bhsd").
  static constexpr Strides bhsd(std::int64_t tokens, std::int64_t heads,
                                std::int64_t dim) noexcept {
    return {heads * tokens * dim, dim, tokens * dim, 1};
  }
};

/// One of q, k, v, o: its strides, and the alignment that its address is promised to have.
struct Operand {
  std::optional<Strides> strides;  ///< unset: contiguous [batch, tokens, heads, dim]
  std::int64_t alignment_bytes =
      0;  ///< power of two; 0: that of one element. GPUs are fastest from 16.

  bool operator==(const Operand&) const = default;
};

}  // namespace tilewright
