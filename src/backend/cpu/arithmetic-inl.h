// src/backend/cpu/arithmetic-inl.h: products in fp32, and how K, V and P are laid out for them.
//
// Inline code of one instruction set: included inside its namespace.

/// One unit is one fp32 number.
struct Float32 : VectorProducts<Float32> {
  static constexpr Index kElements = 1;  ///< of a unit
  /// Up to this many rows are streamed: transposing K would cost more than it saves.
  static constexpr Index kStreamedRows = schedule::kCpuStreamedRows;
  static constexpr Index units(Index elements) { return elements; }
  /// Units that a product steps through for that many elements.
  static constexpr Index depth(Index elements) { return elements; }

  static HWY_INLINE FloatVector dot(FloatVector a, FloatVector b, FloatVector sum) {
    return hn::MulAdd(a, b, sum);
  }
  /// A row of an operand as units.
  static HWY_INLINE const float* unit_row(const Rows& rows, Index r, float* room) {
    return float_row(rows, r, room);
  }
  /// Stores probabilities [column, column + kLanes) of one row.
  static HWY_INLINE void store_p(FloatVector p, float* row, Index column) {
    hn::Store(p, FloatTag(), row + column);
  }
  /// Packs `count` rows of V into panels [count][width], kPanelWidth wide but for the last.
  static HWY_INLINE void pack_values(const Rows& rows, Index first, Index count, float* panels) {
    const FloatTag d;
    alignas(64) float room[kRowRoom];
    const Index whole = rows.dim / kLanes * kLanes;
    for (Index j = 0; j < count; ++j) {
      const float* row = float_row(rows, first + j, room);
      const auto vector_at = [&](Index column) HWY_ATTR {
        const Index panel = column / kPanelWidth * kPanelWidth;
        const Index width =
            schedule::min(kPanelWidth, schedule::round_up(rows.dim, kLanes) - panel);
        return panels + panel * count + j * width + (column - panel);
      };
      for (Index c = 0; c < whole; c += kLanes) {
        hn::Store(hn::LoadU(d, row + c), d, vector_at(c));
      }
      if (whole < rows.dim) {
        float* tail = vector_at(whole);
        for (Index c = 0; c < kLanes; ++c) tail[c] = whole + c < rows.dim ? row[whole + c] : 0.0f;
      }
    }
  }
};
