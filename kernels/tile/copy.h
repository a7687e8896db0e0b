// kernels/tile/copy.h: a tile copied by plain loads, for strides and alignments that TMA cannot
// express.
#pragma once

#include "kernels/attention/hopper_forward_params.h"
#include "kernels/tile/shared_tile.h"

namespace tilewright::kernels {

/// Eight 16-bit elements at `source`; those from `columns` on are zero.
inline uint4 load_chunk(const unsigned short* source, long long column_stride, int columns) {
  if (column_stride == 1 && columns >= 8 &&
      reinterpret_cast<unsigned long long>(source) % 16 == 0) {
    return *reinterpret_cast<const uint4*>(source);
  }
  unsigned words[4] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i < columns)
      words[i / 2] |= static_cast<unsigned>(source[i * column_stride]) << (16 * (i % 2));
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Rows [0, rows) and columns [0, columns) of `source` go to a tile of Rows x Dim elements, the
/// rest becomes zero. By `Threads` threads, whose first has index 32.
template <int Rows, int Dim, int Threads>
inline void copy_tile(char* tile, const StridedTensor& tensor, long long batch, long long first_row,
                      long long head, int rows, int columns) {
  constexpr int kChunks = (Dim + 63) / 64 * 8;
  const unsigned short* source = static_cast<const unsigned short*>(tensor.data) +
                                 batch * tensor.batch_stride + first_row * tensor.row_stride +
                                 head * tensor.head_stride;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) - 32; i < Rows * kChunks; i += Threads) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    uint4 value = {0, 0, 0, 0};
    if (row < rows && 8 * chunk < columns) {
      value = load_chunk(source + row * tensor.row_stride + 8 * chunk * tensor.column_stride,
                         tensor.column_stride, columns - 8 * chunk);
    }
    *reinterpret_cast<uint4*>(tile + SharedTile<Rows>::chunk_offset(row, chunk)) = value;
  }
}

}  // namespace tilewright::kernels
