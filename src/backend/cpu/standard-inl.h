// src/backend/cpu/standard-inl.h: the unfused schedule: S = Q K^T, P = softmax(S), O = P V, each in
// full before the next. The same products and softmax as the tiled schedule, so that what differs
// is where S lies.
//
// Inline code of one instruction set: included inside its namespace.

/// Products of one task's rows with every key tile that some of them sees.
template <class Arithmetic>
void standard_scores(const ForwardCall& call, const ForwardTask& task, std::byte* memory) {
  const Scratch<Arithmetic> scratch(call, memory);
  const TaskOperands operands(call, task);
  const auto walk =
      schedule::make_tile_walk(task.rule, task.token_begin, task.token_end, call.tile.kv_rows);
  const Index rows = task.rows();
  if (walk.tiles() > 0) pack_queries<Arithmetic>(operands.q, rows, scratch);
  for (Index tile = walk.first; tile < walk.end; ++tile) {
    const Index first_key = tile * call.tile.kv_rows;
    const Index keys = schedule::min(call.tile.kv_rows, task.rule.kv_len - first_key);
    pack_keys<Arithmetic>(operands.k, first_key, keys, scratch.depth, scratch.k);
    for (Index row = 0, block; row < rows; row += block) {
      block = next_block_rows(rows - row);
      score_panels<Arithmetic>(scratch, row, block, 0, keys, keys,
                               call.scores + task.token(row) * call.score_stride + first_key,
                               call.score_stride);
    }
  }
}

/// Each row's scores become probabilities, not yet divided by their sum.
template <class Arithmetic>
void standard_softmax(const ForwardCall& call, const ForwardTask& task) {
  const FloatTag d;
  const ScoreRule rule = make_score_rule(call.problem.spec());
  const auto walk =
      schedule::make_tile_walk(task.rule, task.token_begin, task.token_end, call.tile.kv_rows);
  const Index begin = walk.first * call.tile.kv_rows;
  const Index kv_len = task.rule.kv_len;
  const Index end = schedule::min(walk.end * call.tile.kv_rows, kv_len);
  for (Index row = 0; row < task.rows(); ++row) {
    float* s = call.scores + task.token(row) * call.score_stride;
    if (!rule.plain) {
      for (Index key = begin; key < end; key += call.tile.kv_rows) {
        const Index keys = schedule::min(call.tile.kv_rows, end - key);
        adjust_scores(call, task, rule, row, key, 0, schedule::round_up(keys, kLanes), keys,
                      s + key);
      }
    }
    const auto seen = task.rule.row(task.token(row));
    const Index padded = schedule::round_up(end, kLanes);
    if (seen.begin > begin || seen.end < padded) {
      for (Index key = begin; key < padded; key += call.tile.kv_rows) {
        mask_scores(0, schedule::min(call.tile.kv_rows, padded - key), seen.begin - key,
                    seen.end - key, s + key);
      }
    }
    float* ends = call.row_ends + 2 * task.token(row);
    ends[0] = -std::numeric_limits<float>::infinity();
    alignas(64) float sums[kLanes] = {};
    softmax_row<Arithmetic>(s + begin, 0, padded - begin, rule.exp2_factor, {ends, sums});
    ends[1] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, sums)));
  }
}

/// O of one task's rows.
template <class Arithmetic>
void standard_output(const ForwardCall& call, const ForwardTask& task, std::byte* memory) {
  const Scratch<Arithmetic> scratch(call, memory);
  const TaskOperands operands(call, task);
  const ScoreRule rule = make_score_rule(call.problem.spec());
  const auto walk =
      schedule::make_tile_walk(task.rule, task.token_begin, task.token_end, call.tile.kv_rows);
  const Index rows = task.rows();
  scratch.clear(rows);
  float keep[kBlockRows];
  for (float& k : keep) k = 1;
  for (Index tile = walk.first; tile < walk.end; ++tile) {
    const Index first_key = tile * call.tile.kv_rows;
    const Index keys = schedule::min(call.tile.kv_rows, task.rule.kv_len - first_key);
    const Index units = Arithmetic::units(schedule::round_up(keys, kLanes));
    const Values values = take_values(operands.v, first_key, keys, scratch);
    for (Index row = 0, block; row < rows; row += block) {
      block = next_block_rows(rows - row);
      // The product reads a block of P from L1, at the stride that it is compiled for.
      for (Index r = 0; r < block; ++r) {
        const float* p = call.scores + task.token(row + r) * call.score_stride +
                         walk.first * call.tile.kv_rows +
                         Arithmetic::units(first_key - walk.first * call.tile.kv_rows);
        std::memcpy(scratch.scores + r * schedule::kCpuScoreStride, p,
                    static_cast<std::size_t>(units) * sizeof(float));
        Arithmetic::end_p(scratch.scores + r * schedule::kCpuScoreStride,
                          schedule::round_up(keys, kLanes));
      }
      output_panels<Arithmetic>(scratch, values, row, block, 0, keys, keys, keep);
    }
  }
  for (Index row = 0; row < rows; ++row) {
    const float* ends = call.row_ends + 2 * task.token(row);
    finish_output(call, task, row, scratch.o + row * scratch.o_stride, ends[0], ends[1],
                  rule.natural_per_unit);
  }
}
