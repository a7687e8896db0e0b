// src/backend/cpu/forward-inl.h: tiled attention with online softmax, one task at a time.
//
// Inline code of one instruction set: included inside its namespace.

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
    Arithmetic::pack_queries(q, row, block, scratch.q + row * scratch.depth);
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
    Arithmetic::scores(rows, width, scratch.q + row * scratch.depth,
                       scratch.k + column * scratch.depth, scratch.depth, out + column, out_stride);
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
  const Index depth = Arithmetic::depth(end) - first;
  for (Index column = 0; column < scratch.o_stride; column += kPanelWidth) {
    const Index width = schedule::min(kPanelWidth, scratch.o_stride - column);
    const bool packed = values.row_stride == 0;
    const Index stride = packed ? width : values.row_stride;
    const float* right =
        values.data + column * (packed ? Arithmetic::depth(keys) : 1) + first * stride;
    Arithmetic::output(rows, width, scratch.scores + first, right, stride, depth,
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
    Arithmetic::end_p(s, padded_end);
  }
  output_panels<Arithmetic>(scratch, values, row, rows, begin, end, keys, keep);
}

/// Walks a task's key tiles, each packed once for all its rows.
template <class Arithmetic>
void tile_task(const ForwardCall& call, const ForwardTask& task, const ScoreRule& rule,
               const TaskOperands& operands, const schedule::TileWalk& walk,
               const Scratch<Arithmetic>& scratch) {
  const Index rows = task.rows();
  if (walk.tiles() > 0) pack_queries<Arithmetic>(operands.q, rows, scratch);
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
  const bool streams = rows <= Arithmetic::kStreamedRows && can_stream(operands.k, operands.v);
  if (task.kv_heads > 1 && !streams) {
    for (Index h = 0; h < task.kv_heads; ++h) {
      forward_task<Arithmetic>(call, of_kv_head(call, task, h), memory);
    }
    return;
  }
  const auto walk = schedule::split_walk(
      schedule::make_tile_walk(task.rule, task.token_begin, task.token_end, call.tile.kv_rows),
      task.split, call.kv_splits);
  scratch.clear(task.kv_heads * rows);
  if (!streams) {
    tile_task(call, task, rule, operands, walk, scratch);
  } else if (spec.dtype == DType::f32) {
    stream_task<DType::f32>(call, task, rule, walk, scratch);
  } else if (spec.dtype == DType::bf16) {
    stream_task<DType::bf16>(call, task, rule, walk, scratch);
  } else {
    stream_task<DType::f16>(call, task, rule, walk, scratch);
  }
  for (Index at = 0; at < task.kv_heads * rows; ++at) {
    const ForwardTask head = of_kv_head(call, task, at / rows);
    const float* o = scratch.o + at * scratch.o_stride;
    const float max = scratch.max[at];
    const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, scratch.sums + at * kLanes)));
    if (call.kv_splits > 1) {
      store_partial(call, head, at % rows, o, max, sum);
    } else {
      finish_output(call, head, at % rows, o, max, sum, rule.natural_per_unit);
    }
  }
}

/// Merges the partial results of one task's rows, in index order.
inline void merge_task(const ForwardCall& call, const ForwardTask& all) {
  const FloatTag d;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const AttentionSpec& spec = call.problem.spec();
  const ScoreRule rule = make_score_rule(spec);
  const Index stride = spec.v_dim + 2;
  alignas(64) float o[kRowRoom];
  for (Index at = 0; at < all.kv_heads * all.rows(); ++at) {
    const ForwardTask task = of_kv_head(call, all, at / all.rows());
    const Index row = at % all.rows();
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
