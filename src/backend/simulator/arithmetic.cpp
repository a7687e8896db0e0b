// src/backend/simulator/arithmetic.cpp: scores, running softmax and products, in fp64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/simulator/schedules.h"

namespace tilewright::simulator {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

double Run::score(double dot) const {
  const double score = dot * problem.scale();
  const double cap = problem.spec().softcap;
  return cap > 0 ? cap * std::tanh(score / cap) : score;
}

Matrix Run::scores(const Matrix& q_rows, const Matrix& k_rows, Index first_query,
                   Index first_key) const {
  if (!has_numbers) return Matrix::size_only(q_rows.rows, k_rows.rows);
  Matrix scores(q_rows.rows, k_rows.rows, -kInfinity);
  for (Index i = 0; i < q_rows.rows; ++i) {
    for (Index j = 0; j < k_rows.rows; ++j) {
      if (!shape.rule.visible(first_query + i, first_key + j)) continue;
      double dot = 0;
      for (Index d = 0; d < q_rows.columns; ++d) dot += q_rows.at(i, d) * k_rows.at(j, d);
      scores.at(i, j) = score(dot);
    }
  }
  return scores;
}

RowState::RowState(Index rows)
    : max(static_cast<std::size_t>(rows), -kInfinity), sum(static_cast<std::size_t>(rows), 0) {}

std::vector<double> RowState::absorb(Matrix& scores) {
  std::vector<double> keep(max.size(), 1);
  if (!scores.has_numbers) return keep;
  for (std::size_t i = 0; i < max.size(); ++i) {
    const auto row = static_cast<Index>(i);
    double top = max[i];
    for (Index j = 0; j < scores.columns; ++j) top = std::max(top, scores.at(row, j));
    // A row that sees no key yet: exp(-inf - -inf) would be NaN.
    const double base = top == -kInfinity ? 0 : top;
    keep[i] = max[i] == -kInfinity ? 0 : std::exp(max[i] - base);
    sum[i] *= keep[i];
    for (Index j = 0; j < scores.columns; ++j) {
      const double probability = std::exp(scores.at(row, j) - base);
      scores.at(row, j) = probability;
      sum[i] += probability;
    }
    max[i] = top;
  }
  return keep;
}

double RowState::lse(Index row) const {
  const auto i = static_cast<std::size_t>(row);
  return sum[i] > 0 ? max[i] + std::log(sum[i]) : -kInfinity;
}

void multiply_add(const Matrix& p, const Matrix& v, Matrix& o) {
  if (!p.has_numbers) return;
  for (Index i = 0; i < p.rows; ++i) {
    for (Index j = 0; j < p.columns; ++j) {
      const double weight = p.at(i, j);
      if (weight == 0) continue;
      for (Index d = 0; d < v.columns; ++d) o.at(i, d) += weight * v.at(j, d);
    }
  }
}

}  // namespace tilewright::simulator
