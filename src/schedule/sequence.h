// src/schedule/sequence.h: where each sequence of a batch lies, from lengths that are read at run.
//
// Freestanding and constexpr, like mask_rule.h. Lengths and offsets are clamped to the problem's
// bounds, so that no content of a length array can lead outside the tensors.
#pragma once

#include "schedule/mask_rule.h"

namespace tilewright::schedule {

/// One side (queries or keys) of one sequence: rows [first_row, first_row + tokens) of its operand.
struct Sequence {
  Index first_row = 0;  ///< nonzero only when packed: counted from the start of the buffer
  Index tokens = 0;
};

/// per-sequence (padded) lengths: lengths[batch].
constexpr Sequence padded_sequence(const int* lengths, Index batch_index, Index max_tokens) {
  return {0, clamp(lengths[batch_index], 0, max_tokens)};
}

/// cumulative (packed) offsets: offsets[batch + 1].
constexpr Sequence packed_sequence(const int* offsets, Index batch_index, Index max_tokens,
                                   Index total_tokens) {
  const Index begin = clamp(offsets[batch_index], 0, total_tokens);
  const Index end = clamp(offsets[batch_index + 1], begin, total_tokens);
  return {begin, min(end - begin, max_tokens)};
}

}  // namespace tilewright::schedule
