// tilewright/mask.h: which keys a query may see.
#pragma once

#include <cstdint>

namespace tilewright {

/// Where the diagonal of the score matrix lies when q_len and kv_len differ.
enum class Diagonal : std::uint8_t {
  bottom_right = 0,  ///< The last query meets the last key: query i meets key i + kv_len - q_len.
  top_left = 1,      ///< The first query meets the first key: query i meets key i.
};

/// Query i, whose diagonal key is c = i + kv_len - q_len (bottom_right) or c = i (top_left), sees
/// key j iff c - window_left <= j <= c + window_right, and j <= c if causal. Both ends are
/// inclusive; -1 leaves an end unbounded. Lengths are those of each sequence. A query that sees no
/// key gives O = 0 and LSE = -inf (or its sink).
struct Mask {
  bool causal = false;
  Diagonal diagonal = Diagonal::bottom_right;
  std::int64_t window_left = -1;   ///< in keys; -1: unbounded
  std::int64_t window_right = -1;  ///< in keys; -1: unbounded

  bool operator==(const Mask&) const = default;
};

}  // namespace tilewright
