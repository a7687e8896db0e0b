// src/backend/cpu/forward-inl.h: tiled attention with online softmax, one task at a time.
//
// Inline code of one instruction set: included inside its namespace.

/// A worker's scratch, carved into one tile's packed operands and sums.
template <class Arithmetic>
struct Scratch {
  float* q;       ///< panels [depth][rows], one a row block
  float* k;       ///< panels [depth][width]
  float* v;       ///< panels [keys][width]
  float* scores;  ///< one row block, rows kCpuScoreStride apart
  float* o;       ///< [rows][o_stride]
  float* max;     ///< [rows]
  float* sums;    ///< [rows][kLanes]
  Index depth;    ///< units of a q or k row
  Index o_stride;

  Scratch(const ForwardCall& call, std::byte* memory) {
    const AttentionSpec& spec = call.problem.spec();
    const auto bytes = schedule::cpu_forward_footprint(
        call.tile.q_rows, call.tile.kv_rows, spec.qk_dim, spec.v_dim, 4 / Arithmetic::kElements);
    const auto take = [&](Index size) {
      float* part = reinterpret_cast<float*>(memory);
      memory += schedule::round_up(size, 64);
      return part;
    };
    depth = Arithmetic::units(spec.qk_dim);
    o_stride = schedule::round_up(spec.v_dim, kLanes);
    scores = take(schedule::kCpuRowBlock * schedule::kCpuScoreStride * 4);
    sums = take(call.tile.q_rows * kLanes * 4);
    max = take(call.tile.q_rows * 4);
    q = take(bytes.q_bytes);
    k = take(bytes.k_bytes);
    v = take(bytes.v_bytes);
    o = take(bytes.o_bytes);
  }

  /// Nothing seen yet.
  void clear(Index rows) const {
    const FloatTag d;
    for (Index row = 0; row < rows; ++row) {
      max[row] = -std::numeric_limits<float>::infinity();
      hn::Store(hn::Zero(d), d, sums + row * kLanes);
    }
    for (Index i = 0; i < rows * o_stride; i += kLanes) hn::Store(hn::Zero(d), d, o + i);
  }
};

/// The rows of q, k and v that a task reads: its own queries, and its sequence's keys and values.
struct TaskOperands {
  Rows q, k, v;

  TaskOperands(const ForwardCall& call, const ForwardTask& task) {
    const AttentionSpec& spec = call.problem.spec();
    const auto element = static_cast<Index>(size_bytes(spec.dtype));
    const auto rows = [&](const void* data, const Strides& strides, const Lengths& lengths,
                          Index first_token, Index head, Index heads, Index dim) {
      const Index batch = lengths.kind == LengthKind::cumulative ? 0 : task.batch;
      const Index offset =
          batch * strides.batch + first_token * strides.token + head * strides.head;
      return Rows{static_cast<const char*>(data) + offset * element,
                  spec.dtype,
                  strides.token * element,
                  strides.head * element,
                  heads,
                  strides.dim,
                  dim};
    };
    q = rows(call.tensors.q, call.problem.q(), spec.q_lengths, task.q_first_row + task.token_begin,
             task.head, task.heads, spec.qk_dim);
    k = rows(call.tensors.k, call.problem.k(), spec.kv_lengths, task.kv_first_row, task.kv_head, 1,
             spec.qk_dim);
    v = rows(call.tensors.v, call.problem.v(), spec.kv_lengths, task.kv_first_row, task.kv_head, 1,
             spec.v_dim);
  }
};

/// Writes one row of O, scaled, in its dtype and strides.
inline void store_output(const ForwardCall& call, const ForwardTask& task, Index row,
                         const float* from, float scale) {
  const FloatTag d;
  const AttentionSpec& spec = call.problem.spec();
  const Strides& strides = call.problem.o();
  const DType dtype = call.problem.o_dtype();
  const Index batch = spec.q_lengths.kind == LengthKind::cumulative ? 0 : task.batch;
  const Index offset = batch * strides.batch +
                       (task.q_first_row + task.token(row)) * strides.token +
                       task.head_of(row) * strides.head;
  char* to = static_cast<char*>(call.tensors.o) + offset * static_cast<Index>(size_bytes(dtype));
  auto* floats = reinterpret_cast<float*>(to);
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  Index i = 0;
  if (strides.dim == 1) {
    const FloatVector scales = hn::Set(d, scale);
    for (; i + kLanes <= spec.v_dim; i += kLanes) {
      const FloatVector value = hn::Mul(hn::Load(d, from + i), scales);
      if (dtype == DType::f32) {
        hn::StoreU(value, d, floats + i);
      } else if (dtype == DType::bf16) {
        store_bf16(value, halves + i);
      } else {
        store_f16(value, halves + i);
      }
    }
  }
  for (; i < spec.v_dim; ++i) {
    const float value = from[i] * scale;
    if (dtype == DType::f32) {
      floats[i * strides.dim] = value;
    } else {
      halves[i * strides.dim] = dtype == DType::bf16 ? float_to_bf16(value) : float_to_f16(value);
    }
  }
}

/// Writes one finished row of O and LSE.
inline void finish_output(const ForwardCall& call, const ForwardTask& task, Index row,
                          const float* o, float max, float sum, double natural_per_unit) {
  const RowEnd end = finish_row(call, task, row, max, sum, natural_per_unit);
  store_output(call, task, row, o, end.scale);
  if (call.tensors.lse != nullptr) call.tensors.lse[lse_index(call, task, row)] = end.lse;
}

/// Keeps one row's unnormalised O, maximum and sum for merge_rows.
inline void store_partial(const ForwardCall& call, const ForwardTask& task, Index row,
                          const float* from, float max, float sum) {
  const Index v_dim = call.problem.spec().v_dim;
  float* to = call.partials +
              (task.split * call.problem.lse_rows() + lse_index(call, task, row)) * (v_dim + 2);
  to[0] = max;
  to[1] = sum;
  for (Index i = 0; i < v_dim; ++i) to[2 + i] = from[i];
}

template <class Arithmetic>
void pack_keys(const Rows& rows, Index first, Index count, Index depth, float* panels) {
  const Index padded = schedule::round_up(count, kLanes);
  for (Index column = 0; column < padded; column += kPanelWidth) {
    pack_columns<Arithmetic>(rows, first + column, schedule::min(kPanelWidth, count - column),
                             schedule::min(kPanelWidth, padded - column), panels + column * depth);
  }
}

template <class Arithmetic>
void pack_queries(const Rows& q, Index rows, const Scratch<Arithmetic>& scratch) {
  for (Index row = 0, block; row < rows; row += block) {
    block = next_block_rows(rows - row);
    pack_columns<Arithmetic>(q, row, block, block, scratch.q + row * scratch.depth);
  }
}

/// Products of a row block with keys [begin, end) of the packed tile of `keys`, in whole panels:
/// begin is a multiple of kPanelWidth. Key j of the tile goes to column j of out.
template <class Arithmetic>
HWY_INLINE void score_panels(const Scratch<Arithmetic>& scratch, Index row, Index rows, Index begin,
                             Index end, Index keys, float* out, Index out_stride) {
  const Index padded = schedule::round_up(keys, kLanes);
  for (Index column = begin; column < end; column += kPanelWidth) {
    const Index width = schedule::min(kPanelWidth, padded - column);
    score_block<Arithmetic>(rows, width / kLanes, scratch.q + row * scratch.depth,
                            scratch.k + column * scratch.depth, width, scratch.depth, out + column,
                            out_stride);
  }
}

/// The values of one key tile: packed in panels, or where the caller keeps them.
struct Values {
  const float* data;
  Index row_stride;  ///< floats between keys; 0: packed
};

/// O * keep + P V of a row block, over keys [begin, end) of the tile of `keys`.
template <class Arithmetic>
HWY_INLINE void output_panels(const Scratch<Arithmetic>& scratch, const Values& values, Index row,
                              Index rows, Index begin, Index end, Index keys, const float* keep) {
  const Index first = Arithmetic::units(begin);
  const Index depth = Arithmetic::units(end) - first;
  for (Index column = 0; column < scratch.o_stride; column += kPanelWidth) {
    const Index width = schedule::min(kPanelWidth, scratch.o_stride - column);
    const bool packed = values.row_stride == 0;
    const Index stride = packed ? width : values.row_stride;
    const float* right =
        values.data + column * (packed ? Arithmetic::units(keys) : 1) + first * stride;
    output_block<Arithmetic>(rows, width / kLanes, scratch.scores + first, right, stride, depth,
                             scratch.o + row * scratch.o_stride + column, scratch.o_stride, keep);
  }
}

/// The values of keys [first, first + count), packed unless the product can read them in place.
template <class Arithmetic>
Values take_values(const Rows& v, Index first, Index count, const Scratch<Arithmetic>& scratch) {
  if (Arithmetic::kElements == 1 && v.dtype == DType::f32 && v.dim_stride == 1 &&
      v.dim % kLanes == 0 && v.token_bytes != 0) {
    return {reinterpret_cast<const float*>(v.row(first)), v.token_bytes / 4};
  }
  Arithmetic::pack_values(v, first, count, scratch.v);
  return {scratch.v, 0};
}

/// One row block against one key tile: keys [first_key, first_key + keys) of the sequence.
template <class Arithmetic>
void attend_block(const ForwardCall& call, const ForwardTask& task, const ScoreRule& rule,
                  const Scratch<Arithmetic>& scratch, const Values& values, Index row, Index rows,
                  Index first_key, Index keys, bool masked) {
  // Columns of the tile that some row sees; scores are computed in whole panels around them.
  Index begin = 0;
  Index end = keys;
  if (masked) {
    const auto seen = task.rule.visited(task.token(row), task.token(row + rows - 1) + 1);
    begin = schedule::max(seen.begin - first_key, 0) / kPanelWidth * kPanelWidth;
    end = schedule::min(seen.end - first_key, keys);
    if (end <= begin) return;
  }
  score_panels<Arithmetic>(scratch, row, rows, begin, end, keys, scratch.scores,
                           schedule::kCpuScoreStride);
  const Index padded_end = schedule::round_up(end, kLanes);
  float keep[kBlockRows];
  for (Index r = 0; r < rows; ++r) {
    float* s = scratch.scores + r * schedule::kCpuScoreStride;
    if (!rule.plain) {
      adjust_scores(call, task, rule, row + r, first_key, begin, padded_end, keys, s);
    }
    if (masked) {
      const auto seen = task.rule.row(task.token(row + r));
      mask_scores(begin, padded_end, seen.begin - first_key, seen.end - first_key, s);
    }
    keep[r] = softmax_row<Arithmetic>(s, begin, padded_end, rule.exp2_factor,
                                      {scratch.max + row + r, scratch.sums + (row + r) * kLanes});
  }
  output_panels<Arithmetic>(scratch, values, row, rows, begin, end, keys, keep);
}

/// Asks for part `index` of `parts` of operand rows [first, first + count) to be brought to L2,
/// while the tile before them is computed.
HWY_INLINE void prefetch_rows(const Rows& rows, Index first, Index count, Index index,
                              Index parts) {
  if (rows.dim_stride != 1) return;
  const Index bytes = rows.dim * static_cast<Index>(size_bytes(rows.dtype));
  for (Index r = first + count * index / parts; r < first + count * (index + 1) / parts; ++r) {
    for (Index at = 0; at < bytes; at += 64) __builtin_prefetch(rows.row(r) + at, 0, 2);
  }
}

/// Computes one task with the given arithmetic; memory is this worker's scratch.
template <class Arithmetic>
void forward_task(const ForwardCall& call, const ForwardTask& task, std::byte* memory) {
  const FloatTag d;
  const AttentionSpec& spec = call.problem.spec();
  const Scratch<Arithmetic> scratch(call, memory);
  const ScoreRule rule = make_score_rule(spec);
  const Index rows = task.rows();
  const TaskOperands operands(call, task);
  const auto whole =
      schedule::make_tile_walk(task.rule, task.token_begin, task.token_end, call.tile.kv_rows);
  const auto walk = schedule::split_walk(whole, task.split, call.kv_splits);
  if (walk.tiles() > 0) pack_queries<Arithmetic>(operands.q, rows, scratch);
  scratch.clear(rows);
  for (Index tile = walk.first; tile < walk.end; ++tile) {
    const Index first_key = tile * call.tile.kv_rows;
    const Index keys = schedule::min(call.tile.kv_rows, task.rule.kv_len - first_key);
    pack_keys<Arithmetic>(operands.k, first_key, keys, scratch.depth, scratch.k);
    const Values values = take_values(operands.v, first_key, keys, scratch);
    const Index next_key = first_key + keys;
    const Index next_keys =
        tile + 1 < walk.end ? schedule::min(call.tile.kv_rows, task.rule.kv_len - next_key) : 0;
    for (Index row = 0, block; row < rows; row += block) {
      block = next_block_rows(rows - row);
      const Index index = row / kBlockRows;
      const Index parts = schedule::ceil_div(rows, kBlockRows);
      prefetch_rows(operands.k, next_key, next_keys, index, parts);
      prefetch_rows(operands.v, next_key, next_keys, index, parts);
      attend_block<Arithmetic>(call, task, rule, scratch, values, row, block, first_key, keys,
                               walk.masked(tile));
    }
  }
  for (Index row = 0; row < rows; ++row) {
    const float* o = scratch.o + row * scratch.o_stride;
    const float max = scratch.max[row];
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, scratch.sums + row * kLanes)));
    if (call.kv_splits > 1) {
      store_partial(call, task, row, o, max, sum);
      continue;
    }
    finish_output(call, task, row, o, max, sum, rule.natural_per_unit);
  }
}

/// Merges the partial results of one task's rows, in index order.
inline void merge_task(const ForwardCall& call, const ForwardTask& task) {
  const FloatTag d;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const AttentionSpec& spec = call.problem.spec();
  const ScoreRule rule = make_score_rule(spec);
  const Index stride = spec.v_dim + 2;
  alignas(64) float o[kRowRoom];
  for (Index row = 0; row < task.rows(); ++row) {
    const float* partial = call.partials + lse_index(call, task, row) * stride;
    const Index split_stride = call.problem.lse_rows() * stride;
    float max = -kInfinity;
    for (Index s = 0; s < call.kv_splits; ++s) {
      const float split_max = partial[s * split_stride];
      max = split_max > max || split_max != split_max ? split_max : max;
    }
    const float base = max == -kInfinity ? 0.0f : max;
    float sum = 0;
    for (Index i = 0; i < spec.v_dim; ++i) o[i] = 0;
    for (Index s = 0; s < call.kv_splits; ++s) {
      const float* part = partial + s * split_stride;
      const float keep = hn::GetLane(exp2_vector(hn::Set(d, (part[0] - base) * rule.exp2_factor)));
      sum += part[1] * keep;
      for (Index i = 0; i < spec.v_dim; ++i) o[i] += part[2 + i] * keep;
    }
    finish_output(call, task, row, o, max, sum, rule.natural_per_unit);
  }
}
