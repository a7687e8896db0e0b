// kernels/tile/mask.h: sets the scores of unseen keys to -infinity, on a wgmma accumulator.
//
// Thread layout of an accumulator: kernels/ptx/wgmma.h. A thread holds two rows, 8 apart, and of
// every 8 columns two neighbours.
#pragma once

#include "kernels/ptx/math.h"
#include "schedule/mask_rule.h"

namespace tilewright::kernels {

/// The keys that a thread's two rows see. A row sees key j iff unsigned(j - first) <
/// unsigned(count).
struct RowBands {
  int first[2];
  int count[2];

  static RowBands of(const schedule::MaskRule& rule, int first_query, int second_query) {
    RowBands bands;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const schedule::KeyRange keys = rule.row(r == 0 ? first_query : second_query);
      bands.first[r] = static_cast<int>(keys.begin);
      bands.count[r] = static_cast<int>(keys.size());
    }
    return bands;
  }
};

/// column: the key of the thread's first score.
template <int Registers>
inline void mask_scores(float (&scores)[Registers], const RowBands& bands, int column) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) {
    const int r = (i / 2) % 2;
    const int key = column - bands.first[r] + 8 * (i / 4) + i % 2;
    const bool seen = static_cast<unsigned>(key) < static_cast<unsigned>(bands.count[r]);
    scores[i] = seen ? scores[i] : -kInfinity;
  }
}

/// The same where only the end of the sequence masks: keys_left counts from the thread's first
/// score.
template <int Registers>
inline void mask_tail(float (&scores)[Registers], int keys_left) {
#pragma unroll
  for (int i = 0; i < Registers; ++i) {
    scores[i] = 8 * (i / 4) + i % 2 < keys_left ? scores[i] : -kInfinity;
  }
}

}  // namespace tilewright::kernels
