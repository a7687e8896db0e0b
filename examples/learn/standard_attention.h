// examples/learn/standard_attention.h: attention as textbooks write it: S = QK^T, P = softmax(S),
// O = PV, with all of S and P in memory. The later steps take it as the truth.
#pragma once

#include "matrix.h"

inline Matrix standard_attention(const Matrix& q, const Matrix& k, const Matrix& v,
                                 bool causal = false) {
  const float scale = 1 / std::sqrt(static_cast<float>(q.columns));

  // S: how well each query matches each key. A causal query sees no key after its own.
  Matrix scores(q.rows, k.rows);
  for (int i = 0; i < q.rows; ++i) {
    for (int j = 0; j < k.rows; ++j) {
      const bool visible = !causal || j <= i + k.rows - q.rows;
      scores.row(i)[j] = visible ? scale * dot(q.row(i), k.row(j), q.columns) : -INFINITY;
    }
  }

  // P: each row of S turned into weights that sum to 1. Taking the row's maximum off first changes
  // nothing in exact arithmetic, and keeps exp from overflowing.
  for (int i = 0; i < q.rows; ++i) {
    float* row = scores.row(i);
    const float maximum = *std::max_element(row, row + k.rows);
    float sum = 0;
    for (int j = 0; j < k.rows; ++j) sum += row[j] = std::exp(row[j] - maximum);
    for (int j = 0; j < k.rows; ++j) row[j] /= sum;
  }
  const Matrix& weights = scores;

  // O: each output is the weighted mean of the values.
  Matrix o(q.rows, v.columns);
  for (int i = 0; i < q.rows; ++i) {
    for (int j = 0; j < k.rows; ++j) {
      for (int c = 0; c < v.columns; ++c) o.row(i)[c] += weights.row(i)[j] * v.row(j)[c];
    }
  }
  return o;
}
