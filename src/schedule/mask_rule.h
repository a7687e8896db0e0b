// src/schedule/mask_rule.h: which keys a query sees, as one interval per query; shared by all
// backends.
//
// Freestanding and constexpr: compiled by the host compilers and, with -default-device, by NVRTC.
// Every mask here (none, causal either way, windows) is a band: query i sees the keys [first(i),
// end(i)), and both ends rise by one with i until they meet the ends of the sequence. So a tile's
// masked and unmasked keys are intervals too.
#pragma once

namespace tilewright::schedule {

using Index = long long;

constexpr Index min(Index a, Index b) {
  return a < b ? a : b;
}
constexpr Index max(Index a, Index b) {
  return a > b ? a : b;
}
constexpr Index clamp(Index value, Index low, Index high) {
  return max(low, min(value, high));
}
constexpr Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

/// Keys [begin, end); empty when end <= begin.
struct KeyRange {
  Index begin = 0;
  Index end = 0;

  constexpr bool empty() const { return end <= begin; }
  constexpr Index size() const { return empty() ? 0 : end - begin; }
};

/// One sequence's mask: query i sees key j iff i + low <= j <= i + high and 0 <= j < kv_len.
struct MaskRule {
  Index q_len = 0;
  Index kv_len = 0;
  Index low = 0;   ///< of the band, relative to the query's index
  Index high = 0;  ///< of the band, inclusive

  constexpr bool visible(Index query, Index key) const {
    return key >= 0 && key < kv_len && key >= query + low && key <= query + high;
  }

  /// Keys that one query sees.
  constexpr KeyRange row(Index query) const {
    const Index begin = clamp(query + low, 0, kv_len);
    const Index end = clamp(query + high + 1, begin, kv_len);
    return {begin, end};
  }

  /// Keys that some query of [q_begin, q_end) sees: what a tile must visit.
  constexpr KeyRange visited(Index q_begin, Index q_end) const {
    const Index begin = clamp(q_begin + low, 0, kv_len);
    const Index end = clamp(q_end + high, begin, kv_len);
    return {begin, end};
  }

  /// Keys that every query of [q_begin, q_end) sees: where no mask need be applied.
  constexpr KeyRange unmasked(Index q_begin, Index q_end) const {
    const Index begin = clamp(q_end - 1 + low, 0, kv_len);
    const Index end = clamp(q_begin + high + 1, begin, kv_len);
    return {begin, end};
  }
};

/// The rule of one sequence. window_left and window_right: -1 is unbounded. bottom_right: the
/// diagonal meets the last query and key; otherwise the first.
constexpr MaskRule make_mask_rule(Index q_len, Index kv_len, bool causal, bool bottom_right,
                                  Index window_left, Index window_right) {
  const Index diagonal = bottom_right ? kv_len - q_len : 0;
  const Index unbounded = q_len + kv_len;  // farther than any key is from any diagonal
  const Index left = window_left < 0 ? unbounded : min(window_left, unbounded);
  Index right = window_right < 0 ? unbounded : min(window_right, unbounded);
  if (causal) right = min(right, 0);
  return {q_len, kv_len, diagonal - left, diagonal + right};
}

}  // namespace tilewright::schedule
