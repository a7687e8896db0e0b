// src/backend/simulator/schedules.h: the schedules that the simulator runs, one file each.
#pragma once

#include "backend/simulator/unit.h"
#include "plan/traffic.h"

namespace tilewright::simulator {

/// One run: the problem, its operands off chip, and the unit.
struct Run {
  const AttentionProblem& problem;
  const ForwardPlan& forward;
  const TrafficShape& shape;
  StandardSoftmax softmax;
  Unit& unit;
  bool has_numbers;  ///< else bytes are counted alone, and every matrix read is a size
  OffChip q, k, v, o, lse;
  OffChip s, p, partials;  ///< used by some schedules

  Index batch() const { return problem.spec().batch; }
  Index heads() const { return problem.spec().heads; }
  Index kv_head(Index head) const { return head / problem.group(); }
  /// The score of a query and a key that it sees, from their dot product.
  double score(double dot) const;
  /// Zeros, or the size alone.
  Matrix matrix(Index rows, Index columns) const {
    return has_numbers ? Matrix(rows, columns) : Matrix::size_only(rows, columns);
  }
  /// Scores of a block, -inf where masked.
  Matrix scores(const Matrix& q_rows, const Matrix& k_rows, Index first_query,
                Index first_key) const;
};

void run_q_outer(Run& run);
void run_kv_outer(Run& run);
void run_standard(Run& run);

/// Running softmax of some rows: maximum, sum, and O before it is divided by the sum.
struct RowState {
  std::vector<double> max;
  std::vector<double> sum;

  explicit RowState(Index rows);
  /// Takes in a block of scores, which becomes probabilities relative to the new maximum; returns
  /// by what each row's earlier sum and O are to be multiplied.
  std::vector<double> absorb(Matrix& scores);
  double lse(Index row) const;
};

/// o += p * v
void multiply_add(const Matrix& p, const Matrix& v, Matrix& o);

}  // namespace tilewright::simulator
