// src/backend/cpu/stream-inl.h: few queries against many keys, at the speed of memory: K and V are
// read in place, once, in the order in which they lie, and asked for in time.
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

/// Keys of one head that are read before the next head's turn: few, since where heads lie closer
/// than tokens, these rows and the other heads' are one piece of memory.
inline constexpr Index kStreamStep = 16;
/// How far ahead of its use memory is asked for: in keys, and in bytes of all heads together, which
/// wait in L2.
inline constexpr Index kMostAheadKeys = 64;
inline constexpr Index kMostAheadBytes = 256 << 10;

/// One head's rows of K or V in one tile.
struct TileRows {
  const char* data = nullptr;
  Index keys = 0;
  Index token_bytes = 0;
  Index row_bytes = 0;

  TileRows() = default;
  TileRows(const Rows& rows, Index first, Index count)
      : data(rows.row(first)),
        keys(count),
        token_bytes(rows.token_bytes),
        row_bytes(rows.dim * static_cast<Index>(size_bytes(rows.dtype))) {}

  HWY_INLINE void prefetch(Index key) const {
    const char* row = data + key * token_bytes;
    for (Index at = 0; at < row_bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  }
};

/// What to ask for while one head's part of a tile is read: the rows some keys later, then the
/// first of what is read next.
struct Ahead {
  TileRows now;
  TileRows next;
  Index distance = 0;  ///< in keys

  /// While key j of the tile is read.
  HWY_INLINE void fetch(Index j) const {
    j += distance;
    if (j < now.keys) {
      now.prefetch(j);
    } else if (j - now.keys < next.keys) {
      next.prefetch(j - now.keys);
    }
  }
};

/// Products of kRows queries, k.dim floats apart, with keys [begin, end) of the tile that begins at
/// key `first`.
template <DType kType, Index kRows>
HWY_NOINLINE void stream_scores(const float* q, const Rows& k, Index first, Index begin, Index end,
                                float* out, const Ahead& ahead) {
  const FloatTag d;
  Index j = begin;
  for (; j + 4 <= end; j += 4) {
    const char* row[4];
    for (Index c = 0; c < 4; ++c) {
      row[c] = k.row(first + j + c);
      ahead.fetch(j + c);
    }
    FloatVector sum[kRows][4];
    for (auto& of_row : sum) {
      for (FloatVector& s : of_row) s = hn::Zero(d);
    }
    // Row after row, as memory is read fastest.
#pragma GCC unroll 4
    for (Index c = 0; c < 4; ++c) {
      for (Index i = 0; i < k.dim; i += kLanes) {
        const FloatVector key = load_vector<kType>(row[c], i);
#pragma GCC unroll 4
        for (Index r = 0; r < kRows; ++r) {
          sum[r][c] = hn::MulAdd(hn::Load(d, q + r * k.dim + i), key, sum[r][c]);
        }
      }
    }
#pragma GCC unroll 4
    for (Index r = 0; r < kRows; ++r) {
      store_four_sums(sum[r][0], sum[r][1], sum[r][2], sum[r][3],
                      out + r * schedule::kCpuScoreStride + j);
    }
  }
  for (; j < end; ++j) {
    ahead.fetch(j);
    for (Index r = 0; r < kRows; ++r) {
      FloatVector sum = hn::Zero(d);
      for (Index i = 0; i < k.dim; i += kLanes) {
        sum = hn::MulAdd(hn::Load(d, q + r * k.dim + i), load_vector<kType>(k.row(first + j), i),
                         sum);
      }
      out[r * schedule::kCpuScoreStride + j] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

/// Adds P V to kVectors vectors of O's columns, for kRows rows of P.
template <DType kType, Index kRows, Index kVectors>
HWY_NOINLINE void stream_output(const float* p, const Rows& v, Index first, Index begin, Index end,
                                Index column, float* out, Index out_stride, const Ahead& ahead) {
  const FloatTag d;
  FloatVector sum[kRows][kVectors];
#pragma GCC unroll 4
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (Index c = 0; c < kVectors; ++c) {
      sum[r][c] = hn::Load(d, out + r * out_stride + column + c * kLanes);
    }
  }
  for (Index j = begin; j < end; ++j) {
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

// Lambdas have the target's attributes only in part (HWY_ATTR), so what they call is not forced
// inline.

/// Calls use(row, count) for rows taken four, two or one at a time, count a constant.
template <class Use>
void for_row_chunks(Index rows, const Use& use) {
  Index row = 0;
  for (; row + 4 <= rows; row += 4) use(row, std::integral_constant<Index, 4>());
  if (row + 2 <= rows) {
    use(row, std::integral_constant<Index, 2>());
    row += 2;
  }
  if (row < rows) use(row, std::integral_constant<Index, 1>());
}

/// Adds P V to whole rows of O.
template <DType kType>
void stream_rows_output(const float* p, const Rows& v, Index first, Index begin, Index end,
                        Index rows, float* o, Index o_stride, const Ahead& ahead) {
  for_row_chunks(rows, [&](Index row, auto count) HWY_ATTR {
    const float* weights = p + row * schedule::kCpuScoreStride;
    float* out = o + row * o_stride;
    Index column = 0;
    const auto columns = [&](auto vectors) HWY_ATTR {
      for (; column + vectors * kLanes <= o_stride; column += vectors * kLanes) {
        stream_output<kType, count, vectors>(weights, v, first, begin, end, column, out, o_stride,
                                             row == 0 && column == 0 ? ahead : Ahead());
      }
    };
    if constexpr (count == 1) columns(std::integral_constant<Index, 8>());
    columns(std::integral_constant<Index, 4>());
    columns(std::integral_constant<Index, 1>());
  });
}

/// Scores of one row of a tile become probabilities, and its row of O is rescaled to match.
template <class Arithmetic>
void stream_softmax(const ForwardCall& call, const ForwardTask& head, const ScoreRule& rule,
                    const Scratch<Arithmetic>& scratch, Index row, Index at, Index first,
                    Index keys, bool masked) {
  const FloatTag d;
  const Index padded = schedule::round_up(keys, kLanes);
  float* s = scratch.scores + at * schedule::kCpuScoreStride;
  if (!rule.plain) adjust_scores(call, head, rule, row, first, 0, padded, keys, s);
  if (masked) {
    const auto seen = head.rule.row(head.token(row));
    mask_scores(0, padded, seen.begin - first, seen.end - first, s);
  }
  const float keep = softmax_row<Float32>(s, 0, padded, rule.exp2_factor,
                                          {scratch.max + at, scratch.sums + at * kLanes});
  if (keep == 1) return;
  float* o = scratch.o + at * scratch.o_stride;
  for (Index i = 0; i < scratch.o_stride; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, o + i), hn::Set(d, keep)), d, o + i);
  }
}

/// Walks the key tiles of a task of at most kCpuScoreRows rows in all, those of one kv head
/// after another's.
template <DType kType, class Arithmetic>
void stream_task(const ForwardCall& call, const ForwardTask& task, const ScoreRule& rule,
                 const schedule::TileWalk& walk, const Scratch<Arithmetic>& scratch) {
  const Index rows = task.rows();
  const Index dim = call.problem.spec().qk_dim;
  ForwardTask heads[schedule::kCpuScoreRows];
  Rows k[schedule::kCpuScoreRows];
  Rows v[schedule::kCpuScoreRows];
  for (Index h = 0; h < task.kv_heads; ++h) {
    heads[h] = of_kv_head(call, task, h);
    const TaskOperands operands(call, heads[h]);
    k[h] = operands.k;
    v[h] = operands.v;
    for (Index r = 0; r < rows; ++r) {
      alignas(64) float room[kRowRoom];
      std::memcpy(scratch.q + (h * rows + r) * dim, float_row(operands.q, r, room),
                  static_cast<std::size_t>(dim) * sizeof(float));
    }
  }
  const Index token_bytes = task.kv_heads * dim * static_cast<Index>(size_bytes(kType));
  const Index distance = schedule::clamp(kMostAheadBytes / token_bytes, 1, kMostAheadKeys);
  for (Index tile = walk.first; tile < walk.end; ++tile) {
    const Index first = tile * call.tile.kv_rows;
    const Index keys = schedule::min(call.tile.kv_rows, task.rule.kv_len - first);
    const Index next_keys =
        tile + 1 < walk.end ? schedule::min(call.tile.kv_rows, task.rule.kv_len - first - keys) : 0;
    // Head after head at every few keys, so that rows of one token are read together where they lie
    // together.
    const Index step = task.kv_heads == 1 ? keys : kStreamStep;
    const auto each_step = [&](auto use) HWY_ATTR {
      for (Index at = 0; at < keys; at += step) {
        const Index end = schedule::min(at + step, keys);
        for (Index h = 0; h < task.kv_heads; ++h) use(h, at, end);
      }
    };
    each_step([&](Index h, Index begin, Index end) HWY_ATTR {
      const Ahead ahead{{k[h], first, keys}, {v[h], first, keys}, distance};
      for_row_chunks(rows, [&](Index row, auto count) HWY_ATTR {
        const Index at = h * rows + row;
        stream_scores<kType, count>(scratch.q + at * dim, k[h], first, begin, end,
                                    scratch.scores + at * schedule::kCpuScoreStride,
                                    row == 0 ? ahead : Ahead());
      });
    });
    for (Index at = 0; at < task.kv_heads * rows; ++at) {
      stream_softmax(call, heads[at / rows], rule, scratch, at % rows, at, first, keys,
                     walk.masked(tile));
    }
    each_step([&](Index h, Index begin, Index end) HWY_ATTR {
      const Ahead ahead{{v[h], first, keys}, {k[h], first + keys, next_keys}, distance};
      stream_rows_output<kType>(scratch.scores + h * rows * schedule::kCpuScoreStride, v[h], first,
                                begin, end, rows, scratch.o + h * rows * scratch.o_stride,
                                scratch.o_stride, ahead);
    });
  }
}
