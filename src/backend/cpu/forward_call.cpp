// src/backend/cpu/forward_call.cpp: divides a forward call into tasks, and finishes its rows.
#include "backend/cpu/forward_call.h"

#include <cmath>
#include <limits>

#include "schedule/sequence.h"

namespace tilewright::cpu {
namespace {

schedule::Sequence sequence(const Lengths& lengths, const std::int32_t* data, Index batch) {
  switch (lengths.kind) {
    case LengthKind::fixed:
      break;
    case LengthKind::per_sequence:
      return schedule::padded_sequence(data, batch, lengths.max_tokens);
    case LengthKind::cumulative:
      return schedule::packed_sequence(data, batch, lengths.max_tokens, lengths.total_tokens);
  }
  return {0, lengths.max_tokens};
}

}  // namespace

ForwardTask make_task(const ForwardCall& call, Index index, Index split) {
  const AttentionSpec& spec = call.problem.spec();
  const Index group = call.problem.group();
  const Index head_tiles = schedule::ceil_div(group, call.heads_per_tile);
  const Index token_tiles = call.token_tiles();
  // Under a causal mask the last tile has the most keys; short tasks at the end even the load.
  const Index token_tile = token_tiles - 1 - index % token_tiles;
  index /= token_tiles;
  const Index head_tile = index % head_tiles;
  index /= head_tiles;

  ForwardTask task;
  const Index kv_tiles = schedule::ceil_div(spec.kv_heads, call.kv_heads_per_task);
  task.kv_head = index % kv_tiles * call.kv_heads_per_task;
  task.kv_heads = schedule::min(call.kv_heads_per_task, spec.kv_heads - task.kv_head);
  task.batch = index / kv_tiles;
  const Index first = head_tile * call.heads_per_tile;
  task.heads = schedule::min(call.heads_per_tile, group - first);
  task.head = task.kv_head * group + first;
  task.split = split;
  const auto q = sequence(spec.q_lengths, call.tensors.q_lengths, task.batch);
  const auto kv = sequence(spec.kv_lengths, call.tensors.kv_lengths, task.batch);
  task.q_first_row = q.first_row;
  task.kv_first_row = kv.first_row;
  task.token_begin = schedule::min(token_tile * call.tokens_per_tile(), q.tokens);
  task.token_end = schedule::min(task.token_begin + call.tokens_per_tile(), q.tokens);
  task.rule = schedule::make_mask_rule(q.tokens, kv.tokens, spec.mask.causal,
                                       spec.mask.diagonal == Diagonal::bottom_right,
                                       spec.mask.window_left, spec.mask.window_right);
  return task;
}

ForwardTask of_kv_head(const ForwardCall& call, const ForwardTask& task, Index index) {
  ForwardTask part = task;
  part.kv_head += index;
  part.kv_heads = 1;
  part.head += index * call.problem.group();
  return part;
}

Index lse_index(const ForwardCall& call, const ForwardTask& task, Index row) {
  const AttentionSpec& spec = call.problem.spec();
  const Index head = task.head_of(row);
  const Index token = task.token(row);
  if (spec.q_lengths.kind == LengthKind::cumulative) {
    return head * spec.q_lengths.total_tokens + task.q_first_row + token;
  }
  return (task.batch * spec.heads + head) * spec.q_lengths.max_tokens + token;
}

RowEnd finish_row(const ForwardCall& call, const ForwardTask& task, Index row, float max, float sum,
                  double natural_per_unit) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const AttentionSpec& spec = call.problem.spec();
  // A NaN among the scores need not show in the maximum, but does in the sum.
  const bool empty = max == -kInfinity && sum == 0;
  const double natural_max = empty ? -kInfinity : static_cast<double>(max) * natural_per_unit;
  double lse = empty ? -kInfinity : natural_max + std::log(static_cast<double>(sum));
  double scale = empty ? 0.0 : 1.0 / static_cast<double>(sum);
  if (spec.sinks != PerHead::none) {
    const Index head = task.head_of(row);
    const double sink = static_cast<double>(
        call.tensors
            .sinks[spec.sinks == PerHead::per_head ? head : task.batch * spec.heads + head]);
    if (empty) {
      lse = sink;
    } else if (sink != -kInfinity) {
      // O is in units of exp(natural_max); the denominator gains exp(sink) in the same units.
      const double top = natural_max > sink ? natural_max : sink;
      const double keys = static_cast<double>(sum) * std::exp(natural_max - top);
      const double total = keys + std::exp(sink - top);
      lse = top + std::log(total);
      scale = std::exp(natural_max - top) / total;
    }
  }
  return {static_cast<float>(scale), static_cast<float>(lse)};
}

}  // namespace tilewright::cpu
