// src/backend/cpu/product-inl.h: the two products of attention, as blocks held in registers.
//
// Inline code of one instruction set: included inside its namespace. A block is kBlockRows rows by
// kBlockVectors vectors of sums; both products are sum over k of left(row, k) * right(k, column).
// With 32 registers 24 sums leave room for two vectors of the right-hand side and one broadcast (on
// Arm the compiler loads every left-hand number first, so 16);
// with 16, 12 sums do.

/// Rows of the next block when `rows` are left: whole blocks, then powers of two (any number where
/// blocks are of matrix tiles).
constexpr Index next_block_rows(Index rows) {
  if (rows >= kBlockRows || kBlockRows > 12) return schedule::min(rows, kBlockRows);
  Index block = 8;
  while (block > rows) block /= 2;
  return block;
}

/// out(row, column) = sum, or out * keep[row] + sum when kAccumulate. left(row, k) is
/// left[row * kLeftRow + k * kLeftDepth], right(k, column) is right[k * width + column] with width
/// = kVectors * kLanes.
template <class Arithmetic, Index kRows, Index kVectors, Index kLeftRow, Index kLeftDepth,
          bool kAccumulate>
HWY_NOINLINE void product_block(const float* left, const float* right, Index right_stride,
                                Index depth, float* out, Index out_stride, const float* keep) {
  const FloatTag d;
  FloatVector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (Index v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (Index k = 0; k < depth; ++k) {
    FloatVector column[kVectors];
#pragma GCC unroll 4
    for (Index v = 0; v < kVectors; ++v) column[v] = hn::LoadU(d, right + v * kLanes);
#pragma GCC unroll 16
    for (Index r = 0; r < kRows; ++r) {
      const FloatVector row = hn::Set(d, left[r * kLeftRow]);
#pragma GCC unroll 4
      for (Index v = 0; v < kVectors; ++v) sum[r][v] = Arithmetic::dot(row, column[v], sum[r][v]);
    }
    left += kLeftDepth;
    right += right_stride;
  }
#pragma GCC unroll 16
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (Index v = 0; v < kVectors; ++v) {
      float* at = out + r * out_stride + v * kLanes;
      if constexpr (kAccumulate) {
        sum[r][v] = hn::MulAdd(hn::Load(d, at), hn::Set(d, keep[r]), sum[r][v]);
      }
      hn::Store(sum[r][v], d, at);
    }
  }
}

/// Calls product(rows, vectors) with both as constants.
template <class Product>
HWY_INLINE void with_block(Index rows, Index vectors, Product product) {
  const auto with_rows = [&](auto fixed_rows) HWY_ATTR {
    if (vectors == 2) {
      product(fixed_rows, std::integral_constant<Index, 2>());
    } else {
      product(fixed_rows, std::integral_constant<Index, 1>());
    }
  };
  if (rows == kBlockRows) return with_rows(std::integral_constant<Index, kBlockRows>());
  if constexpr (kBlockRows > 8) {
    if (rows == 8) return with_rows(std::integral_constant<Index, 8>());
  }
  if (rows == 4) return with_rows(std::integral_constant<Index, 4>());
  if (rows == 2) return with_rows(std::integral_constant<Index, 2>());
  return with_rows(std::integral_constant<Index, 1>());
}

/// The products of vector instructions, for Arithmetic to build on.
template <class Arithmetic>
struct VectorProducts {
  /// Packs a block of rows of Q: [depth][rows].
  static HWY_INLINE void pack_queries(const Rows& q, Index row, Index rows, float* to) {
    pack_columns<Arithmetic>(q, row, rows, rows, to);
  }
  /// A block of scores: left is what pack_queries made.
  static HWY_INLINE void scores(Index rows, Index width, const float* left, const float* right,
                                Index depth, float* out, Index out_stride) {
    with_block(rows, width / kLanes, [&](auto fixed_rows, auto fixed_vectors) HWY_ATTR {
      product_block<Arithmetic, fixed_rows, fixed_vectors, 1, fixed_rows, false>(
          left, right, width, depth, out, out_stride, nullptr);
    });
  }
  /// out * keep + P V for a block of rows of P, which lie kCpuScoreStride apart.
  static HWY_INLINE void output(Index rows, Index width, const float* left, const float* right,
                                Index right_stride, Index depth, float* out, Index out_stride,
                                const float* keep) {
    with_block(rows, width / kLanes, [&](auto fixed_rows, auto fixed_vectors) HWY_ATTR {
      product_block<Arithmetic, fixed_rows, fixed_vectors, schedule::kCpuScoreStride, 1, true>(
          left, right, right_stride, depth, out, out_stride, keep);
    });
  }
  /// Makes a row of P readable to a whole step of the product past its stored columns.
  static HWY_INLINE void end_p(float* /*row*/, Index /*columns*/) {}
};
