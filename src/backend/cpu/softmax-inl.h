// src/backend/cpu/softmax-inl.h: scores to probabilities, one row of a tile at a time.
//
// Inline code of one instruction set: included inside its namespace.

/// What turns products into scores, beyond a positive scale. One row's own numbers are added by
/// make_row.
struct ScoreRule {
  bool plain = true;  ///< score = scale * product; nothing else
  float scale = 1;
  float softcap = 0;
  double natural_per_unit;  ///< what one unit of the stored scores is worth
  float exp2_factor;        ///< exp(score) = exp2(stored score * this)
};

inline ScoreRule make_score_rule(const AttentionSpec& spec) {
  constexpr double kLog2E = 1.4426950408889634;
  ScoreRule rule;
  const double scale = *spec.scale;
  rule.scale = static_cast<float>(scale);
  rule.softcap = static_cast<float>(spec.softcap);
  // Products are kept unscaled when the scale can be part of the exponent: positive, and far from
  // the ends of fp32.
  rule.plain = spec.softcap == 0 && spec.alibi == PerHead::none &&
               spec.bias.kind == BiasKind::none && scale > 1e-30 && scale < 1e30;
  rule.natural_per_unit = rule.plain ? scale : 1.0;
  rule.exp2_factor = static_cast<float>(rule.natural_per_unit * kLog2E);
  return rule;
}

/// The bias of one row at keys [first, first + count) as fp32 to add; a masked key is -inf.
inline void load_bias(const ForwardCall& call, const ForwardTask& task, Index row, Index first,
                      Index count, float* to) {
  const Bias& bias = call.problem.spec().bias;
  const Index offset = task.batch * bias.batch_stride + task.head_of(row) * bias.head_stride +
                       task.token(row) * bias.q_stride + first * bias.kv_stride;
  if (bias.kind == BiasKind::boolean) {
    const auto* seen = static_cast<const std::uint8_t*>(call.tensors.bias) + offset;
    for (Index j = 0; j < count; ++j) {
      to[j] = seen[j * bias.kv_stride] != 0 ? 0.0f : -std::numeric_limits<float>::infinity();
    }
    return;
  }
  const auto element = static_cast<Index>(size_bytes(bias.dtype));
  const Rows rows{static_cast<const char*>(call.tensors.bias) + offset * element,
                  bias.dtype,
                  0,
                  0,
                  1,
                  bias.kv_stride,
                  0};
  for (Index done = 0; done < count; done += 256) {
    alignas(64) float room[kRowRoom];
    Rows part = rows;
    part.data += done * bias.kv_stride * element;
    part.dim = schedule::min(256, count - done);
    const float* values = float_row(part, 0, room);
    for (Index j = 0; j < part.dim; ++j) to[done + j] = values[j];
  }
}

/// Products of one row at keys [key, key + (end - begin)) of the sequence, stored at s[begin, end),
/// become scores, mask aside. valid: columns below it lie in the sequence.
inline void adjust_scores(const ForwardCall& call, const ForwardTask& task, const ScoreRule& rule,
                          Index row, Index first_key, Index begin, Index end, Index valid,
                          float* s) {
  const FloatTag d;
  const AttentionSpec& spec = call.problem.spec();
  const Index head = task.head_of(row);
  const FloatVector scale = hn::Set(d, rule.scale);
  const FloatVector cap = hn::Set(d, rule.softcap);
  float slope = 0;
  if (spec.alibi != PerHead::none) {
    slope =
        call.tensors
            .alibi_slopes[spec.alibi == PerHead::per_head ? head : task.batch * spec.heads + head];
  }
  alignas(64) float bias[schedule::kCpuMaxKeyRows];
  if (spec.bias.kind != BiasKind::none && valid > begin) {
    load_bias(call, task, row, first_key + begin, valid - begin, bias + begin);
  }
  for (Index j = schedule::max(valid, begin); j < end; ++j) bias[j] = 0;
  const Index diagonal = task.token(row) + task.rule.kv_len - task.rule.q_len;
  for (Index j = begin; j < end; j += kLanes) {
    FloatVector x = hn::Mul(hn::Load(d, s + j), scale);
    if (rule.softcap > 0) x = hn::Mul(cap, tanh_vector(hn::Div(x, cap)));
    if (spec.alibi != PerHead::none) {
      const auto nearest = static_cast<float>(first_key + j - diagonal);
      x = hn::Sub(x, hn::Mul(hn::Set(d, slope), hn::Abs(hn::Iota(d, nearest))));
    }
    if (spec.bias.kind == BiasKind::additive) x = hn::Add(x, hn::Load(d, bias + j));
    if (spec.bias.kind == BiasKind::boolean) {
      const FloatVector seen = hn::Load(d, bias + j);
      x = hn::IfThenElse(hn::Eq(seen, hn::Zero(d)), x, seen);
    }
    hn::Store(x, d, s + j);
  }
}

/// Scores outside [seen_begin, seen_end) become -inf, over s[begin, end).
inline void mask_scores(Index begin, Index end, Index seen_begin, Index seen_end, float* s) {
  const FloatTag d;
  const FloatVector low = hn::Set(d, static_cast<float>(seen_begin));
  const FloatVector high = hn::Set(d, static_cast<float>(seen_end));
  const FloatVector masked = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (Index j = begin; j < end; j += kLanes) {
    const FloatVector column = hn::Iota(d, static_cast<float>(j));
    const auto seen = hn::And(hn::Ge(column, low), hn::Lt(column, high));
    hn::Store(hn::IfThenElse(seen, hn::Load(d, s + j), masked), d, s + j);
  }
}

/// One row's state between key tiles: the maximum in units of stored scores, and kLanes partial
/// sums.
struct RowState {
  float* max;
  float* sums;  ///< kLanes of them
};

/// s[begin, end) becomes probabilities under the new maximum. Returns what O so far is worth.
template <class Arithmetic>
HWY_INLINE float softmax_row(float* s, Index begin, Index end, float exp2_factor, RowState state) {
  const FloatTag d;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Two chains, as each maximum waits for the one before.
  FloatVector top = hn::Set(d, *state.max);
  FloatVector other = top;
  Index at = begin;
  for (; at + 2 * kLanes <= end; at += 2 * kLanes) {
    top = hn::Max(top, hn::Load(d, s + at));
    other = hn::Max(other, hn::Load(d, s + at + kLanes));
  }
  if (at < end) top = hn::Max(top, hn::Load(d, s + at));
  const float max = max_of_lanes(hn::Max(top, other));
  // With nothing seen yet every score is -inf; any finite maximum gives zeros.
  const float base = max == -kInfinity ? 0.0f : max;
  const FloatVector factor = hn::Set(d, exp2_factor);
  const FloatVector bases = hn::Set(d, base);
  FloatVector sum = hn::Zero(d);
  for (Index j = begin; j < end; j += kLanes) {
    const FloatVector p = exp2_vector(hn::Mul(hn::Sub(hn::Load(d, s + j), bases), factor));
    sum = hn::Add(sum, p);
    Arithmetic::store_p(p, s, j);
  }
  const FloatVector keep = exp2_vector(hn::Mul(hn::Sub(hn::Set(d, *state.max), bases), factor));
  hn::Store(hn::MulAdd(hn::Load(d, state.sums), keep, sum), d, state.sums);
  *state.max = max;
  return hn::GetLane(keep);
}
