// kernels/tile/store_rows.h: rows of a wgmma accumulator to global memory, in 16 bits or fp32.
//
// Straight from registers: the four lanes of a quad hold a row, and trade pairs so that each stores 16
// contiguous bytes. No shared memory and no barrier, so the next tile's copies need not wait.
#pragma once

#include "kernels/ptx/math.h"
#include "kernels/ptx/thread.h"

namespace tilewright::kernels {

/// Lane i of a quad gives words[j] and gets word i of lane j, for all j: a 4 x 4 transpose.
inline void transpose_quad(unsigned (&words)[4]) {
  const int lane = lane_index();
  const bool odd = (lane & 1) != 0, upper = (lane & 2) != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {  // 2 x 2 blocks between neighbours
    const unsigned received = shuffle_xor(odd ? words[i] : words[i + 1], 1);
    (odd ? words[i] : words[i + 1]) = received;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // halves of the quad
    const unsigned received = shuffle_xor(upper ? words[i] : words[i + 2], 2);
    (upper ? words[i] : words[i + 2]) = received;
  }
}

/// Stores columns [0, columns) of one of the thread's two rows (which = 0 or 1). row: its start in memory.
/// live: whether the row exists; dead rows take part in the shuffles only.
template <typename Element, int Registers>
inline void store_row_16bit(const float (&d)[Registers], int which, unsigned short* row,
                            long long column_stride, int columns, bool live) {
  constexpr int kGroups = Registers / 4;  // of 8 columns
  const int quad_lane = lane_index() % 4;
  const bool vectors = column_stride == 1 && columns % 8 == 0 &&
                       reinterpret_cast<unsigned long long>(row) % 16 == 0;
#pragma unroll
  for (int group = 0; group < kGroups; group += 4) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (group + i < kGroups) {
        const int at = 4 * (group + i) + 2 * which;
        words[i] = pack_pair<Element>(d[at], d[at + 1]);
      } else {
        words[i] = 0;
      }
    }
    transpose_quad(words);
    const int column = 8 * (group + quad_lane);
    if (!live || column >= columns) continue;
    if (vectors) {
      *reinterpret_cast<uint4*>(row + column) = {words[0], words[1], words[2], words[3]};
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (column + i < columns) {
          row[(column + i) * column_stride] =
              static_cast<unsigned short>(words[i / 2] >> (16 * (i % 2)));
        }
      }
    }
  }
}

template <int Registers>
inline void store_row_f32(const float (&d)[Registers], int which, float* row,
                          long long column_stride, int columns, bool live) {
  if (!live) return;
  const int first = 2 * (lane_index() % 4);
  const bool vectors = column_stride == 1 && columns % 2 == 0 &&
                       reinterpret_cast<unsigned long long>(row) % 8 == 0;
#pragma unroll
  for (int group = 0; group < Registers / 4; ++group) {
    const int column = 8 * group + first;
    const float x = d[4 * group + 2 * which], y = d[4 * group + 2 * which + 1];
    if (vectors) {
      if (column < columns) *reinterpret_cast<float2*>(row + column) = {x, y};
    } else {
      if (column < columns) row[column * column_stride] = x;
      if (column + 1 < columns) row[(column + 1) * column_stride] = y;
    }
  }
}

}  // namespace tilewright::kernels
