// src/backend/cpu/pack-inl.h: reads operand rows of any dtype and stride, and packs them for
// products.
//
// Inline code of one instruction set: included inside its namespace. A packed operand is made of
// 32-bit units: one fp32 number, or two bf16 numbers that follow each other along the product's
// depth. It lies in panels [depth][width], each panel the right-hand (or left-hand) side of one
// block.

/// A block of a product is kBlockRows (which each instruction set's file gives) by this many
/// vectors.
inline constexpr Index kBlockVectors = 2;
inline constexpr Index kPanelWidth = kBlockVectors * kLanes;

/// Rows of one operand of one head (or of the heads that share a tile, token by token).
struct Rows {
  const char* data;  ///< row 0
  DType dtype;
  Index token_bytes;  ///< between tokens
  Index head_bytes;   ///< between heads of a token
  Index heads;        ///< rows of one token
  Index dim_stride;   ///< in elements
  Index dim;

  const char* row(Index r) const {
    return heads == 1 ? data + r * token_bytes
                      : data + (r / heads) * token_bytes + (r % heads) * head_bytes;
  }
};

/// Widest operand row, in elements, with room for a whole vector at its end.
inline constexpr Index kRowRoom = 256 + 16;

/// One row as fp32: in place when it is so already, else converted into room. Elements past dim up
/// to a whole vector are readable only in room, where they are zero.
HWY_INLINE const float* float_row(const Rows& rows, Index r, float* room) {
  const FloatTag d;
  const char* from = rows.row(r);
  if (rows.dim_stride == 1) {
    if (rows.dtype == DType::f32) return reinterpret_cast<const float*>(from);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
    Index i = 0;
    for (; i + kLanes <= rows.dim; i += kLanes) {
      hn::StoreU(rows.dtype == DType::bf16 ? load_bf16(halves + i) : load_f16(halves + i), d,
                 room + i);
    }
    for (; i < rows.dim; ++i) {
      room[i] = rows.dtype == DType::bf16 ? bf16_to_float(halves[i]) : f16_to_float(halves[i]);
    }
  } else if (rows.dtype == DType::f32) {
    const auto* floats = reinterpret_cast<const float*>(from);
    for (Index i = 0; i < rows.dim; ++i) room[i] = floats[i * rows.dim_stride];
  } else {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
    for (Index i = 0; i < rows.dim; ++i) {
      const std::uint16_t bits = halves[i * rows.dim_stride];
      room[i] = rows.dtype == DType::bf16 ? bf16_to_float(bits) : f16_to_float(bits);
    }
  }
  hn::StoreU(hn::Zero(d), d, room + rows.dim);
  return room;
}

/// Stores each 128-bit block of v, stride units apart.
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to, Index stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks(half, hn::LowerHalf(half, v), to, stride);
    store_blocks(half, hn::UpperHalf(half, v), to + Index{hn::MaxLanes(D()) / 8} * stride, stride);
  }
}

/// Four rows of `depth` units become four neighbouring columns, `width` units between steps.
HWY_INLINE void transpose_four(const float* const rows[4], Index depth, Index width, float* to) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Repartition<std::uint64_t, FloatTag> du64;
  Index k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    const auto a = hn::BitCast(du, hn::LoadU(d, rows[0] + k));
    const auto b = hn::BitCast(du, hn::LoadU(d, rows[1] + k));
    const auto c = hn::BitCast(du, hn::LoadU(d, rows[2] + k));
    const auto e = hn::BitCast(du, hn::LoadU(d, rows[3] + k));
    const auto ab_low = hn::BitCast(du64, hn::InterleaveLower(du, a, b));
    const auto ab_high = hn::BitCast(du64, hn::InterleaveUpper(du, a, b));
    const auto ce_low = hn::BitCast(du64, hn::InterleaveLower(du, c, e));
    const auto ce_high = hn::BitCast(du64, hn::InterleaveUpper(du, c, e));
    float* at = to + k * width;
    // Block i of each of these is step k + 4 i + (0 to 3).
    store_blocks(d, hn::BitCast(d, hn::InterleaveLower(du64, ab_low, ce_low)), at, 4 * width);
    store_blocks(d, hn::BitCast(d, hn::InterleaveUpper(du64, ab_low, ce_low)), at + width,
                 4 * width);
    store_blocks(d, hn::BitCast(d, hn::InterleaveLower(du64, ab_high, ce_high)), at + 2 * width,
                 4 * width);
    store_blocks(d, hn::BitCast(d, hn::InterleaveUpper(du64, ab_high, ce_high)), at + 3 * width,
                 4 * width);
  }
  for (; k < depth; ++k) {
    for (Index i = 0; i < 4; ++i) to[k * width + i] = rows[i][k];
  }
}

/// Rows [first, first + count) become the columns of one panel [depth][width]; what lies past count
/// or a row's end is zero.
template <class Arithmetic>
HWY_INLINE void pack_columns(const Rows& rows, Index first, Index count, Index width,
                             float* panel) {
  alignas(64) float room[4][kRowRoom];
  const Index depth = Arithmetic::units(rows.dim);
  for (Index i = depth * width; i < Arithmetic::depth(rows.dim) * width; ++i) panel[i] = 0;
  Index column = 0;
  for (; column + 4 <= count; column += 4) {
    const float* four[4];
    for (Index i = 0; i < 4; ++i) {
      four[i] = Arithmetic::unit_row(rows, first + column + i, room[i]);
    }
    transpose_four(four, depth, width, panel + column);
  }
  for (; column < count; ++column) {
    const float* row = Arithmetic::unit_row(rows, first + column, room[0]);
    for (Index k = 0; k < depth; ++k) panel[k * width + column] = row[k];
  }
  for (; column < width; ++column) {
    for (Index k = 0; k < depth; ++k) panel[k * width + column] = 0;
  }
}
