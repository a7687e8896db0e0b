// tests/schedule/brute_force.h: every small mask, and what it lets a query see, from mask.h's
// words.
#pragma once

#include <ostream>

#include "schedule/mask_rule.h"

namespace tilewright::schedule {

struct SmallMask {
  Index q_len, kv_len;
  bool causal, bottom_right;
  Index left, right;

  MaskRule rule() const { return make_mask_rule(q_len, kv_len, causal, bottom_right, left, right); }
  bool sees(Index i, Index j) const {
    const Index c = bottom_right ? i + kv_len - q_len : i;
    return j >= 0 && j < kv_len && (!causal || j <= c) && (left < 0 || j >= c - left) &&
           (right < 0 || j <= c + right);
  }
};

/// All shapes up to `most` tokens a side with windows that end inside, at and beyond them.
template <typename Visit>
void for_each_small_mask(Index most, Visit visit) {
  for (Index q_len = 0; q_len <= most; ++q_len) {
    for (Index kv_len = 0; kv_len <= most; ++kv_len) {
      for (const bool causal : {false, true}) {
        for (const bool bottom_right : {false, true}) {
          for (const Index left : {Index{-1}, Index{0}, Index{1}, Index{3}, most, 2 * most}) {
            for (const Index right : {Index{-1}, Index{0}, Index{2}, most - 1, 2 * most}) {
              visit(SmallMask{q_len, kv_len, causal, bottom_right, left, right});
            }
          }
        }
      }
    }
  }
}

inline std::ostream& operator<<(std::ostream& os, const SmallMask& m) {
  return os << m.q_len << "x" << m.kv_len << (m.causal ? " causal" : "")
            << (m.bottom_right ? " bottom_right" : " top_left") << " window " << m.left << ","
            << m.right;
}

}  // namespace tilewright::schedule
