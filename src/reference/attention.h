// src/reference/attention.h: attention row by row in fp64, and the standard attention whose error
// sets the scale of the tolerance.
//
// Plain and readable rather than fast: every backend is judged against it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/head.h"
#include "tilewright/attention.h"

namespace tilewright::reference {

/// Every row of every sequence, in order of batch, head and query.
std::vector<RowIndex> all_rows(const AttentionProblem& problem, const AttentionTensors& tensors);

/// At most `count` rows: first and last ones and others drawn with the seed, in the same order. For
/// sequences too long to check in full.
std::vector<RowIndex> sample_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                                  std::int64_t count, std::uint64_t seed);

/// One row of O and its LSE.
template <typename Real>
struct Row {
  std::vector<Real> o;
  Real lse = 0;
};

/// The row in fp64.
Row<double> exact_row(const Head& head, std::int64_t query);

/// The row as standard attention computes it: scores, exponentials and sums in fp32, P = exp(score
/// - max) rounded to the operands' dtype before it meets V, O rounded to its own.
Row<float> standard_row(const Head& head, std::int64_t query);

/// The standard deviations and bounds that rounding errors of a row are relative to; see
/// tolerance.h.
struct RowSpread {
  std::vector<double> absolute;     ///< sum p |v|
  std::vector<double> quadratic;    ///< sqrt(sum p^2 v^2)
  std::vector<double> sensitivity;  ///< sum p m |v - o|: o moves so when scores move by m
  std::vector<double> unweighted;   ///< max p * sqrt(sum v^2)
  double lse_sensitivity = 0;       ///< sum p m, m the magnitude of a score's terms
};

RowSpread row_spread(const Head& head, std::int64_t query, const Row<double>& exact);

/// Calls visit(i, head) once for each row i of `rows`, from several threads (0: all there are),
/// gathering each head once a run of its rows.
void for_each_row(const AttentionProblem& problem, const AttentionTensors& tensors,
                  const std::vector<RowIndex>& rows,
                  const std::function<void(std::size_t i, const Head& head)>& visit,
                  int threads = 0);

/// The rows in fp64.
std::vector<Row<double>> attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                                   const std::vector<RowIndex>& rows, int threads = 0);

}  // namespace tilewright::reference
