// src/backend/cpu/bf16_arithmetic-inl.h: products of bf16 pairs with fp32 sums, and how K, V and P
// are laid out for them.
//
// Inline code of one instruction set: included inside its namespace, where dot_pairs(a, b, sum)
// adds both products of each pair and store_pairs(p, to) rounds to bf16.

/// One unit is two bf16 numbers that follow each other along the product's depth, the first in the
/// low half. An odd depth ends in a zero.
struct Bf16 : VectorProducts<Bf16> {
  static constexpr Index kElements = 2;  ///< of a unit
  /// Streamed rows are widened to fp32, which soon costs more than packing does.
  static constexpr Index kStreamedRows = 8;
  static constexpr Index units(Index elements) { return (elements + 1) / 2; }
  static constexpr Index depth(Index elements) { return units(elements); }

  static HWY_INLINE FloatVector dot(FloatVector a, FloatVector b, FloatVector sum) {
    return dot_pairs(a, b, sum);
  }

  /// A row of 16-bit numbers in order: in place, or gathered into room.
  static HWY_INLINE const std::uint16_t* half_row(const Rows& rows, Index r, std::uint16_t* room) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(rows.row(r));
    if (rows.dim_stride == 1) return from;
    for (Index i = 0; i < rows.dim; ++i) room[i] = from[i * rows.dim_stride];
    return room;
  }

  static HWY_INLINE const float* unit_row(const Rows& rows, Index r, float* room) {
    const char* from = rows.row(r);
    if (rows.dim_stride == 1 && rows.dim % 2 == 0 &&
        reinterpret_cast<std::uintptr_t>(from) % alignof(float) == 0) {
      return reinterpret_cast<const float*>(from);
    }
    alignas(64) std::uint16_t halves[kRowRoom];
    const std::uint16_t* row = half_row(rows, r, halves);
    room[units(rows.dim) - 1] = 0;
    std::memcpy(room, row, static_cast<std::size_t>(rows.dim) * 2);
    return room;
  }

  static HWY_INLINE void store_p(FloatVector p, float* row, Index column) {
    store_pairs(p, reinterpret_cast<std::uint16_t*>(row) + column);
  }

  static HWY_INLINE void pack_values(const Rows& rows, Index first, Index count, float* panels) {
    pack_pairs(rows, first, count, units(count), panels);
  }

  /// Packs `count` rows of V into panels [depth][width]: a unit pairs two keys, zero past count.
  static HWY_INLINE void pack_pairs(const Rows& rows, Index first, Index count, Index depth,
                                    float* panels) {
    const FloatTag d;
    const hn::RebindToUnsigned<FloatTag> du;
    const hn::Rebind<std::uint16_t, FloatTag> d16;
    alignas(64) std::uint16_t room[2][kRowRoom];
    const Index padded = schedule::round_up(rows.dim, kLanes);
    for (Index pair = 0; pair < depth; ++pair) {
      const std::uint16_t* two[2];
      for (Index i = 0; i < 2; ++i) {
        two[i] = room[i];
        if (2 * pair + i >= count) {
          std::memset(room[i], 0, sizeof room[i]);
          continue;
        }
        const std::uint16_t* row = half_row(rows, first + 2 * pair + i, room[i]);
        if (padded == rows.dim) {
          two[i] = row;
        } else {
          if (row != room[i]) {
            std::memcpy(room[i], row, static_cast<std::size_t>(rows.dim) * 2);
          }
          std::memset(room[i] + rows.dim, 0, static_cast<std::size_t>(padded - rows.dim) * 2);
        }
      }
      for (Index c = 0; c < padded; c += kLanes) {
        const Index panel = c / kPanelWidth * kPanelWidth;
        const Index width = schedule::min(kPanelWidth, padded - panel);
        const auto low = hn::PromoteTo(du, hn::LoadU(d16, two[0] + c));
        const auto high = hn::PromoteTo(du, hn::LoadU(d16, two[1] + c));
        hn::Store(hn::BitCast(d, hn::Or(low, hn::ShiftLeft<16>(high))), d,
                  panels + panel * depth + pair * width + (c - panel));
      }
    }
  }
};
