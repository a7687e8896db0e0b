// src/reference/tolerance.h: judges O and LSE against fp64, with a tolerance computed for each row.
//
// A row passes when its largest error is at most 2 * e_standard + t, where e_standard is the error
// of standard attention on the same row and t follows from what rounds where:
//   O's dtype:  u |o|
//   P's dtype:  2 u (|o| + sqrt(sum p^2 v^2)), errors of many p being independent but for a part in
//               common, and for fp16 its subnormals' step of 2^-24
//   fp32:       8 u (sum p |v| + sum p m |v - o|), m the magnitude of a score's terms
// with u the unit roundoff. Those of LSE: 16 u (|lse| + 1 + sum p m), since matrix units truncate
// where others round. So a tolerance is loose only where arithmetic is, and a row with one dominant
// key must match to the last bits of O's dtype.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/attention.h"

namespace tilewright::reference {

/// One row in fp64 and the errors that it may have.
struct ExpectedRow {
  RowIndex index;
  Row<double> exact;
  double o_allowed = 0;
  double lse_allowed = 0;
  double standard_error = 0;  ///< of O: that of standard attention
};

std::vector<ExpectedRow> expected_rows(const AttentionProblem& problem,
                                       const AttentionTensors& tensors,
                                       const std::vector<RowIndex>& rows, int threads = 0);

/// The element that used up most of what it was allowed.
struct Deviation {
  RowIndex index;
  std::int64_t dim = -1;  ///< of O; -1: the LSE
  double got = 0;
  double want = 0;
  double error = 0;
  double allowed = 0;

  /// error / allowed; infinite for a NaN or infinity that should not be, or should.
  double ratio() const;
};

struct Comparison {
  std::int64_t rows = 0;
  double max_o_error = 0;
  double max_lse_error = 0;
  double max_standard_error = 0;  ///< of O: that of standard attention on the same rows
  std::int64_t failures = 0;      ///< elements beyond what they were allowed
  Deviation worst;

  bool ok() const { return failures == 0; }
};

/// tensors.o, and tensors.lse unless null, against the expected rows.
Comparison compare(const AttentionProblem& problem, const AttentionTensors& tensors,
                   const std::vector<ExpectedRow>& rows);

/// expected_rows and compare in one call.
Comparison compare(const AttentionProblem& problem, const AttentionTensors& tensors,
                   const std::vector<RowIndex>& rows, int threads = 0);

/// For a failed test: the worst element's index and values, how to reproduce it.
std::string to_text(const Comparison& comparison, std::string_view plan, std::uint64_t seed);

}  // namespace tilewright::reference
