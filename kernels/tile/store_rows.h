// kernels/tile/store_rows.h: rows of a wgmma accumulator to global memory, in 16 bits or fp32.
//
// Straight from registers: the four lanes of a quad hold a row, and trade pairs so that each stores
// 16 contiguous bytes. No shared memory and no barrier, so the next tile's copies need not wait.
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

/// A thread's two rows of the output, in elements from its start.
struct OutputRows {
  long long first;
  long long second;
  bool live[2];  ///< the row exists; dead rows take part in the shuffles only
  long long column_stride;
  int columns;
};

/// Whether both rows can be stored in aligned vectors of `bytes`.
template <typename Stored>
inline bool vectors_fit(const Stored* data, const OutputRows& rows, int bytes) {
  const int elements = bytes / static_cast<int>(sizeof(Stored));
  return rows.column_stride == 1 && rows.columns % elements == 0 && rows.first % elements == 0 &&
         rows.second % elements == 0 && reinterpret_cast<unsigned long long>(data) % bytes == 0;
}

/// Stores d, its rows multiplied by `factor`.
template <typename Element, int Registers>
inline void store_rows(const float (&d)[Registers], const float (&factor)[2], unsigned short* data,
                       const OutputRows& rows) {
  constexpr int kGroups = Registers / 4;  // of 8 columns
  const int quad_lane = lane_index() % 4;
  // The whole warp as one: rows of an odd pitch are aligned here and not there, and all must
  // shuffle.
  if (__all_sync(0xffffffffu, vectors_fit(data, rows, 16))) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      unsigned short* row = data + (r == 0 ? rows.first : rows.second) + 8 * quad_lane;
#pragma unroll
      for (int group = 0; group < kGroups; group += 4) {
        unsigned words[4] = {};
#pragma unroll
        for (int i = 0; i < 4 && group + i < kGroups; ++i) {
          const int at = 4 * (group + i) + 2 * r;
          words[i] = pack_pair<Element>(d[at] * factor[r], d[at + 1] * factor[r]);
        }
        transpose_quad(words);
        if (rows.live[r] && 8 * (group + quad_lane) < rows.columns) {
          *reinterpret_cast<uint4*>(row + 8 * group) = {words[0], words[1], words[2], words[3]};
        }
      }
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (!rows.live[r]) continue;
    unsigned short* to =
        data + (r == 0 ? rows.first : rows.second) + 2 * quad_lane * rows.column_stride;
    int columns = rows.columns - 2 * quad_lane;
#pragma unroll
    for (int i = 2 * r; i < Registers; i += 4) {
      const float x = d[i] * factor[r], y = d[i + 1] * factor[r];
      if (columns > 0) to[0] = static_cast<unsigned short>(pack_pair<Element>(x, x));
      if (columns > 1)
        to[rows.column_stride] = static_cast<unsigned short>(pack_pair<Element>(y, y));
      to += 8 * rows.column_stride;
      columns -= 8;
    }
  }
}

template <typename Element, int Registers>
inline void store_rows(const float (&d)[Registers], const float (&factor)[2], float* data,
                       const OutputRows& rows) {
  const int quad_lane = lane_index() % 4;
  const bool vectors = vectors_fit(data, rows, 8);
#pragma unroll
  for (int i = 0; i < Registers; i += 2) {
    const int r = (i / 2) % 2;
    float* row = data + (r == 0 ? rows.first : rows.second);
    const int column = 8 * (i / 4) + 2 * quad_lane;
    if (!rows.live[r] || column >= rows.columns) continue;
    const float x = d[i] * factor[r], y = d[i + 1] * factor[r];
    if (vectors) {
      *reinterpret_cast<float2*>(row + column) = {x, y};
    } else {
      row[column * rows.column_stride] = x;
      if (column + 1 < rows.columns) row[(column + 1) * rows.column_stride] = y;
    }
  }
}

}  // namespace tilewright::kernels
