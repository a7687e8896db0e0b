// src/backend/cpu/tile_arithmetic-inl.h: products of bf16 pairs on matrix tiles (AMX), 16 rows by
// 16 units at a time.
//
// Inline code of one instruction set: included inside its namespace. Tiles gives the instructions:
//   configure(rows0, rows1)   rows of the upper and lower row tiles; 0: none
//   zero<c>(), load<t>(from, stride), store<t>(to, stride), dot<c, a, b>()
// Tiles 0 to 3 are sums (two by two), 4 and 5 rows of the left-hand side, 6 and 7 columns of the
// right.

template <class Tiles>
struct TileBf16 : Bf16 {
  static constexpr Index kTile = 16;
  static constexpr Index depth(Index elements) {
    return schedule::round_up(units(elements), kTile);
  }

  /// Rows as they are, zero up to a whole step.
  static HWY_INLINE void pack_queries(const Rows& q, Index row, Index rows, float* to) {
    alignas(64) float room[kRowRoom];
    const Index whole = depth(q.dim);
    for (Index r = 0; r < rows; ++r) {
      const float* from = unit_row(q, row + r, room);
      std::memcpy(to + r * whole, from, static_cast<std::size_t>(units(q.dim)) * 4);
      std::memset(to + r * whole + units(q.dim), 0,
                  static_cast<std::size_t>(whole - units(q.dim)) * 4);
    }
  }

  static HWY_INLINE void pack_values(const Rows& rows, Index first, Index count, float* panels) {
    pack_pairs(rows, first, count, depth(count), panels);
  }

  static HWY_INLINE void end_p(float* row, Index columns) {
    auto* p = reinterpret_cast<std::uint16_t*>(row);
    std::memset(p + columns, 0, static_cast<std::size_t>(2 * depth(columns) - columns) * 2);
  }

  static HWY_INLINE void scores(Index rows, Index width, const float* left, const float* right,
                                Index depth, float* out, Index out_stride) {
    product<false>(rows, width, left, depth, right, width, depth, out, out_stride);
  }

  static HWY_INLINE void output(Index rows, Index width, const float* left, const float* right,
                                Index right_stride, Index depth, float* out, Index out_stride,
                                const float* keep) {
    const FloatTag d;
    for (Index r = 0; r < rows; ++r) {
      if (keep[r] == 1) continue;
      for (Index c = 0; c < width; c += kLanes) {
        float* at = out + r * out_stride + c;
        hn::Store(hn::Mul(hn::Load(d, at), hn::Set(d, keep[r])), d, at);
      }
    }
    product<true>(rows, width, left, schedule::kCpuScoreStride, right, right_stride, depth, out,
                  out_stride);
  }

 private:
  /// One block of sums, up to 32 rows by 32 columns: out = (kAccumulate ? out : 0) + left right.
  template <bool kAccumulate>
  static HWY_NOINLINE void product(Index rows, Index width, const float* left, Index left_stride,
                                   const float* right, Index right_stride, Index depth, float* out,
                                   Index out_stride) {
    const bool two_rows = rows > kTile;
    const bool two_columns = width > kTile;
    const float* low_left = left + kTile * left_stride;
    float* low_out = out + kTile * out_stride;
    Tiles::configure(schedule::min(rows, kTile), rows - schedule::min(rows, kTile));
    if constexpr (kAccumulate) {
      Tiles::template load<0>(out, out_stride);
      if (two_columns) Tiles::template load<1>(out + kTile, out_stride);
      if (two_rows) Tiles::template load<2>(low_out, out_stride);
      if (two_rows && two_columns) Tiles::template load<3>(low_out + kTile, out_stride);
    } else {
      Tiles::template zero<0>();
      Tiles::template zero<1>();
      if (two_rows) {
        Tiles::template zero<2>();
        Tiles::template zero<3>();
      }
    }
    for (Index k = 0; k < depth; k += kTile) {
      Tiles::template load<4>(left + k, left_stride);
      Tiles::template load<6>(right + k * right_stride, right_stride);
      Tiles::template dot<0, 4, 6>();
      if (two_columns) {
        Tiles::template load<7>(right + k * right_stride + kTile, right_stride);
        Tiles::template dot<1, 4, 7>();
      }
      if (two_rows) {
        Tiles::template load<5>(low_left + k, left_stride);
        Tiles::template dot<2, 5, 6>();
        if (two_columns) Tiles::template dot<3, 5, 7>();
      }
    }
    Tiles::template store<0>(out, out_stride);
    if (two_columns) Tiles::template store<1>(out + kTile, out_stride);
    if (two_rows) Tiles::template store<2>(low_out, out_stride);
    if (two_rows && two_columns) Tiles::template store<3>(low_out + kTile, out_stride);
  }
};
