// kernels/tile/shared_tile.h: tiles of 16-bit elements in shared memory, as TMA writes and wgmma
// reads them.
//
// A tile is a row of panels; a panel is Rows rows of 64 elements (128 bytes) with the 128-byte
// swizzle: 16-byte chunk c of row r lies at chunk c ^ (r % 8). Panels start on multiples of 1024
// bytes.
#pragma once

namespace tilewright::kernels {

template <int Rows>
struct SharedTile {
  static constexpr int kRowBytes = 128;
  static constexpr int kPanelElements = 64;
  static constexpr int kPanelBytes = Rows * kRowBytes;

  /// Byte offset of the 16-byte chunk that holds elements [8 * chunk, 8 * chunk + 8) of a row.
  static int chunk_offset(int row, int chunk) {
    return (chunk / 8) * kPanelBytes + row * kRowBytes + (((chunk % 8) ^ (row % 8)) << 4);
  }

  /// wgmma descriptor of an operand whose K dimension runs along the rows (Q, and K of Q K^T).
  static unsigned long long k_major(unsigned address) { return descriptor(address, 1); }

  /// wgmma descriptor of an operand whose K dimension runs down the rows (V of P V).
  static unsigned long long mn_major(unsigned address) {
    return descriptor(address, kPanelBytes / 16);
  }

  /// What to add to a k_major descriptor for the 16 elements of K step `step`.
  static constexpr unsigned long long k_major_step(int step) {
    return ((step / 4) * kPanelBytes + (step % 4) * 32) / 16;
  }

  /// What to add to an mn_major descriptor for the 16 rows of K step `step`.
  static constexpr unsigned long long mn_major_step(int step) { return step * 16 * kRowBytes / 16; }

 private:
  static unsigned long long descriptor(unsigned address, unsigned leading) {
    constexpr unsigned kEightRows = 8 * kRowBytes / 16;
    constexpr unsigned kSwizzle128 = 1u << 30;
    const unsigned low = (address >> 4) | (leading << 16);
    return (static_cast<unsigned long long>(kEightRows | kSwizzle128) << 32) | low;
  }
};

}  // namespace tilewright::kernels
