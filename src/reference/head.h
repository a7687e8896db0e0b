// src/reference/head.h: one head of one sequence, gathered from however it lies in memory, and its
// scores.
//
// The rules here (lengths, mask, order of the score's terms) are written straight from the public
// headers' words and share nothing with src/schedule, so that each can find faults in the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference/element.h"
#include "tilewright/attention.h"

namespace tilewright::reference {

/// Query `query` of sequence `batch` and head `head`.
struct RowIndex {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;

  bool operator==(const RowIndex&) const = default;
};

/// Where one side of a sequence lies: tokens from first_row of the operand, in batch `batch`.
struct TokenRange {
  std::int64_t batch = 0;
  std::int64_t first_row = 0;
  std::int64_t tokens = 0;

  /// Element offset of a token's first component.
  std::int64_t offset(const Strides& strides, std::int64_t token, std::int64_t head) const {
    return batch * strides.batch + (first_row + token) * strides.token + head * strides.head;
  }
};

/// A sequence's queries or keys, with lengths clamped to the problem's bounds.
TokenRange token_range(const Lengths& lengths, const std::int32_t* data, std::int64_t batch);

/// Index of a row in the LSE array.
std::int64_t lse_index(const AttentionProblem& problem, const AttentionTensors& tensors,
                       const RowIndex& row);

/// Every element is exact in fp32, whatever its dtype.
struct Head {
  const AttentionProblem* problem = nullptr;
  const AttentionTensors* tensors = nullptr;
  std::int64_t batch = 0;
  std::int64_t head = 0;
  TokenRange queries;
  TokenRange keys;
  std::vector<float> k;  ///< [tokens, qk_dim]
  std::vector<float> v;  ///< [tokens, v_dim]
  double alibi_slope = 0;
  double sink = -std::numeric_limits<double>::infinity();

  std::vector<float> q_row(std::int64_t query) const;
  bool visible(std::int64_t query, std::int64_t key) const;
  /// What the bias adds: -inf where a boolean bias masks.
  double bias(std::int64_t query, std::int64_t key) const;
};

Head gather_head(const AttentionProblem& problem, const AttentionTensors& tensors,
                 std::int64_t batch, std::int64_t head);

/// The score of one key that a query sees.
template <typename Real>
struct Score {
  std::int64_t key = 0;
  Real value = 0;
  /// Sum of the absolute values of the terms: what rounding errors of the score are relative to.
  Real magnitude = 0;
};

/// The scores of one row in the precision Real, keys that are masked (score -inf) left out.
template <typename Real>
std::vector<Score<Real>> scores(const Head& head, std::int64_t query) {
  const AttentionSpec& spec = head.problem->spec();
  const auto scale = static_cast<Real>(*spec.scale);
  const auto softcap = static_cast<Real>(spec.softcap);
  const std::vector<float> q = head.q_row(query);
  std::vector<Score<Real>> row;
  for (std::int64_t key = 0; key < head.keys.tokens; ++key) {
    if (!head.visible(query, key)) continue;
    const float* k = head.k.data() + key * spec.qk_dim;
    Real dot = 0;
    Real magnitude = 0;
    for (std::int64_t d = 0; d < spec.qk_dim; ++d) {
      const Real product = static_cast<Real>(q[static_cast<std::size_t>(d)]) * k[d];
      dot += product;
      magnitude += std::abs(product);
    }
    Real value = scale * dot;
    magnitude *= std::abs(scale);
    if (softcap > 0) value = softcap * std::tanh(value / softcap);
    if (spec.alibi != PerHead::none) {
      const std::int64_t distance = query + head.keys.tokens - head.queries.tokens - key;
      const Real term = static_cast<Real>(head.alibi_slope) * static_cast<Real>(std::abs(distance));
      value -= term;
      magnitude += std::abs(term);
    }
    if (spec.bias.kind != BiasKind::none) {
      const auto term = static_cast<Real>(head.bias(query, key));
      value += term;
      if (std::isfinite(term)) magnitude += std::abs(term);
    }
    if (value == -std::numeric_limits<Real>::infinity()) continue;
    row.push_back({key, value, magnitude});
  }
  return row;
}

}  // namespace tilewright::reference
