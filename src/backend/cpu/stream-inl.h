// src/backend/cpu/stream-inl.h: few queries against many keys, at the speed of memory: K and V are
// read in place, once, each prefetched while the other is used.
//
// Inline code of one instruction set: included inside its namespace.

/// True when rows of K and V can be read by whole vectors where they lie.
inline bool can_stream(const Rows& k, const Rows& v) {
  return k.dim_stride == 1 && v.dim_stride == 1 && k.dim % kLanes == 0 && v.dim % kLanes == 0;
}

template <DType kType>
HWY_INLINE FloatVector load_vector(const char* row, Index i) {
  if constexpr (kType == DType::f32) {
    return hn::LoadU(FloatTag(), reinterpret_cast<const float*>(row) + i);
  } else if constexpr (kType == DType::bf16) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(row) + i);
  } else {
    return load_f16(reinterpret_cast<const std::uint16_t*>(row) + i);
  }
}

/// Sums of the lanes of four vectors, in order.
HWY_INLINE void store_four_sums(FloatVector a, FloatVector b, FloatVector c, FloatVector e,
                                float* to) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> dd;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  // Each 128-bit block now holds a0+a2 b0+b2 a1+a3 b1+b3, and the same of c and e.
  const auto low = hn::InterleaveLower(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  const auto high = hn::InterleaveUpper(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  auto sums = hn::Add(hn::BitCast(d, low), hn::BitCast(d, high));
  if constexpr (kLanes == 16) {
    const hn::Half<FloatTag> half;
    const hn::Half<decltype(half)> quarter;
    const auto halves = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    hn::StoreU(hn::Add(hn::LowerHalf(quarter, halves), hn::UpperHalf(quarter, halves)), quarter,
               to);
  } else if constexpr (kLanes == 8) {
    const hn::Half<FloatTag> half;
    hn::StoreU(hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)), half, to);
  } else {
    hn::StoreU(sums, d, to);
  }
}

/// Rows to prefetch, one for each key that is used meanwhile.
struct Ahead {
  const Rows& rows;
  Index first;
  Index count;

  HWY_INLINE void fetch(Index index) const {
    if (index < count) prefetch_rows(rows, first + index, 1, 0, 1);
  }
};

/// Products of kRows queries (kRowRoom floats apart) with keys [first, first + keys).
template <DType kType, Index kRows>
HWY_NOINLINE void stream_scores(const float* q, const Rows& k, Index first, Index keys, float* out,
                                const Ahead& ahead) {
  const FloatTag d;
  Index j = 0;
  for (; j + 4 <= keys; j += 4) {
    const char* row[4];
    for (Index c = 0; c < 4; ++c) {
      row[c] = k.row(first + j + c);
      ahead.fetch(j + c);
    }
    FloatVector sum[kRows][4];
    for (auto& of_row : sum) {
      for (FloatVector& s : of_row) s = hn::Zero(d);
    }
    for (Index i = 0; i < k.dim; i += kLanes) {
      FloatVector key[4];
#pragma GCC unroll 4
      for (Index c = 0; c < 4; ++c) key[c] = load_vector<kType>(row[c], i);
#pragma GCC unroll 4
      for (Index r = 0; r < kRows; ++r) {
        const FloatVector query = hn::Load(d, q + r * kRowRoom + i);
#pragma GCC unroll 4
        for (Index c = 0; c < 4; ++c) sum[r][c] = hn::MulAdd(query, key[c], sum[r][c]);
      }
    }
#pragma GCC unroll 4
    for (Index r = 0; r < kRows; ++r) {
      store_four_sums(sum[r][0], sum[r][1], sum[r][2], sum[r][3],
                      out + r * schedule::kCpuScoreStride + j);
    }
  }
  for (; j < keys; ++j) {
    ahead.fetch(j);
    for (Index r = 0; r < kRows; ++r) {
      FloatVector sum = hn::Zero(d);
      for (Index i = 0; i < k.dim; i += kLanes) {
        sum = hn::MulAdd(hn::Load(d, q + r * kRowRoom + i), load_vector<kType>(k.row(first + j), i),
                         sum);
      }
      out[r * schedule::kCpuScoreStride + j] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

/// kVectors vectors of O's columns: out * keep + P V for kRows rows of P.
template <DType kType, Index kRows, Index kVectors>
HWY_NOINLINE void stream_output(const float* p, const Rows& v, Index first, Index keys,
                                Index column, float* out, Index out_stride, const float* keep,
                                const Ahead& ahead) {
  const FloatTag d;
  FloatVector sum[kRows][kVectors];
#pragma GCC unroll 4
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (Index c = 0; c < kVectors; ++c) {
      sum[r][c] =
          hn::Mul(hn::Load(d, out + r * out_stride + column + c * kLanes), hn::Set(d, keep[r]));
    }
  }
  for (Index j = 0; j < keys; ++j) {
    ahead.fetch(j);
    const char* row = v.row(first + j);
    FloatVector value[kVectors];
#pragma GCC unroll 8
    for (Index c = 0; c < kVectors; ++c) value[c] = load_vector<kType>(row, column + c * kLanes);
#pragma GCC unroll 4
    for (Index r = 0; r < kRows; ++r) {
      const FloatVector weight = hn::Set(d, p[r * schedule::kCpuScoreStride + j]);
#pragma GCC unroll 8
      for (Index c = 0; c < kVectors; ++c) sum[r][c] = hn::MulAdd(weight, value[c], sum[r][c]);
    }
  }
#pragma GCC unroll 4
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (Index c = 0; c < kVectors; ++c) {
      hn::Store(sum[r][c], d, out + r * out_stride + column + c * kLanes);
    }
  }
}

/// Walks the key tiles of a task of at most kCpuStreamedRows rows.
template <DType kType, class Arithmetic>
void stream_task(const ForwardCall& call, const ForwardTask& task, const ScoreRule& rule,
                 const TaskOperands& operands, const schedule::TileWalk& walk,
                 const Scratch<Arithmetic>& scratch) {
  float* const scores = scratch.scores;
  const Index o_stride = scratch.o_stride;
  const Index rows = task.rows();
  alignas(64) float q[schedule::kCpuStreamedRows * kRowRoom];
  for (Index r = 0; r < rows; ++r) {
    const float* row = float_row(operands.q, r, q + r * kRowRoom);
    if (row != q + r * kRowRoom) {
      std::memcpy(q + r * kRowRoom, row, static_cast<std::size_t>(operands.q.dim) * sizeof(float));
    }
  }
  // Rows go four, two or one at a time; each chunk as a constant.
  const auto for_chunks = [&](auto use) HWY_ATTR {
    Index row = 0;
    for (; row + 4 <= rows; row += 4) use(row, std::integral_constant<Index, 4>());
    if (row + 2 <= rows) {
      use(row, std::integral_constant<Index, 2>());
      row += 2;
    }
    if (row < rows) use(row, std::integral_constant<Index, 1>());
  };
  for (Index tile = walk.first; tile < walk.end; ++tile) {
    const Index first = tile * call.tile.kv_rows;
    const Index keys = schedule::min(call.tile.kv_rows, task.rule.kv_len - first);
    const Index next_keys =
        tile + 1 < walk.end ? schedule::min(call.tile.kv_rows, task.rule.kv_len - first - keys) : 0;
    const Index padded = schedule::round_up(keys, kLanes);
    for_chunks([&](Index row, auto count) HWY_ATTR {
      const Ahead values{operands.v, first, row == 0 ? keys : 0};
      stream_scores<kType, count>(q + row * kRowRoom, operands.k, first, keys,
                                  scores + row * schedule::kCpuScoreStride, values);
    });
    float keep[schedule::kCpuStreamedRows];
    for (Index r = 0; r < rows; ++r) {
      float* s = scores + r * schedule::kCpuScoreStride;
      if (!rule.plain) adjust_scores(call, task, rule, r, first, 0, padded, keys, s);
      if (walk.masked(tile)) {
        const auto seen = task.rule.row(task.token(r));
        mask_scores(0, padded, seen.begin - first, seen.end - first, s);
      }
      keep[r] = softmax_row<Float32>(s, 0, padded, rule.exp2_factor,
                                     {scratch.max + r, scratch.sums + r * kLanes});
    }
    for_chunks([&](Index row, auto count) HWY_ATTR {
      constexpr Index kVectors = count == 1 ? 8 : 4;
      float* out = scratch.o + row * o_stride;
      const float* p = scores + row * schedule::kCpuScoreStride;
      Index column = 0;
      const auto ahead = [&]() HWY_ATTR {
        return Ahead{operands.k, first + keys, row == 0 && column == 0 ? next_keys : 0};
      };
      for (; column + kVectors * kLanes <= o_stride; column += kVectors * kLanes) {
        stream_output<kType, count, kVectors>(p, operands.v, first, keys, column, out, o_stride,
                                              keep + row, ahead());
      }
      for (; column < o_stride; column += kLanes) {
        stream_output<kType, count, 1>(p, operands.v, first, keys, column, out, o_stride,
                                       keep + row, ahead());
      }
    });
  }
}
