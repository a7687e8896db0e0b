// src/reference/head.cpp: gathers one head of one sequence from any strides and lengths.
#include "reference/head.h"

#include <algorithm>

namespace tilewright::reference {
namespace {

double per_head_value(PerHead kind, const float* data, std::int64_t heads, std::int64_t batch,
                      std::int64_t head) {
  return kind == PerHead::per_head ? data[head] : data[batch * heads + head];
}

std::vector<float> gather(const void* data, DType dtype, const Strides& strides,
                          const TokenRange& range, std::int64_t head, std::int64_t dim) {
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(range.tokens * dim));
  for (std::int64_t token = 0; token < range.tokens; ++token) {
    const std::int64_t first = range.offset(strides, token, head);
    for (std::int64_t d = 0; d < dim; ++d) {
      rows.push_back(load(data, dtype, first + d * strides.dim));
    }
  }
  return rows;
}

}  // namespace

TokenRange token_range(const Lengths& lengths, const std::int32_t* data, std::int64_t batch) {
  if (lengths.kind == LengthKind::fixed) return {batch, 0, lengths.max_tokens};
  if (lengths.kind == LengthKind::per_sequence) {
    return {batch, 0, std::clamp<std::int64_t>(data[batch], 0, lengths.max_tokens)};
  }
  const auto begin = std::clamp<std::int64_t>(data[batch], 0, lengths.total_tokens);
  const auto end = std::clamp<std::int64_t>(data[batch + 1], begin, lengths.total_tokens);
  return {0, begin, std::min(end - begin, lengths.max_tokens)};
}

std::int64_t lse_index(const AttentionProblem& problem, const AttentionTensors& tensors,
                       const RowIndex& row) {
  const AttentionSpec& spec = problem.spec();
  if (spec.q_lengths.kind != LengthKind::cumulative) {
    return (row.batch * spec.heads + row.head) * problem.q_len() + row.query;
  }
  const TokenRange queries = token_range(spec.q_lengths, tensors.q_lengths, row.batch);
  return row.head * spec.q_lengths.total_tokens + queries.first_row + row.query;
}

std::vector<float> Head::q_row(std::int64_t query) const {
  const AttentionSpec& spec = problem->spec();
  TokenRange one = queries;
  one.first_row += query;
  one.tokens = 1;
  return gather(tensors->q, spec.dtype, problem->q(), one, head, spec.qk_dim);
}

bool Head::visible(std::int64_t query, std::int64_t key) const {
  const Mask& mask = problem->spec().mask;
  const std::int64_t diagonal =
      mask.diagonal == Diagonal::bottom_right ? query + keys.tokens - queries.tokens : query;
  if (mask.causal && key > diagonal) return false;
  // Compared by distance: a window may be as large as 2^63 - 1.
  if (mask.window_left >= 0 && diagonal - key > mask.window_left) return false;
  if (mask.window_right >= 0 && key - diagonal > mask.window_right) return false;
  return true;
}

double Head::bias(std::int64_t query, std::int64_t key) const {
  const Bias& b = problem->spec().bias;
  const std::int64_t offset =
      batch * b.batch_stride + head * b.head_stride + query * b.q_stride + key * b.kv_stride;
  if (b.kind == BiasKind::additive) return load(tensors->bias, b.dtype, offset);
  return static_cast<const std::uint8_t*>(tensors->bias)[offset] != 0
             ? 0.0
             : -std::numeric_limits<double>::infinity();
}

Head gather_head(const AttentionProblem& problem, const AttentionTensors& tensors,
                 std::int64_t batch, std::int64_t head) {
  const AttentionSpec& spec = problem.spec();
  Head result;
  result.problem = &problem;
  result.tensors = &tensors;
  result.batch = batch;
  result.head = head;
  result.queries = token_range(spec.q_lengths, tensors.q_lengths, batch);
  result.keys = token_range(spec.kv_lengths, tensors.kv_lengths, batch);
  const std::int64_t kv_head = head / (spec.heads / spec.kv_heads);
  result.k = gather(tensors.k, spec.dtype, problem.k(), result.keys, kv_head, spec.qk_dim);
  result.v = gather(tensors.v, spec.dtype, problem.v(), result.keys, kv_head, spec.v_dim);
  if (spec.alibi != PerHead::none) {
    result.alibi_slope = per_head_value(spec.alibi, tensors.alibi_slopes, spec.heads, batch, head);
  }
  if (spec.sinks != PerHead::none) {
    result.sink = per_head_value(spec.sinks, tensors.sinks, spec.heads, batch, head);
  }
  return result;
}

}  // namespace tilewright::reference
