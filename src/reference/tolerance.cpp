// src/reference/tolerance.cpp: judges O and LSE against fp64, with a tolerance for each row.
#include "reference/tolerance.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double o_rounding(const AttentionSpec& spec, const Row<double>& exact, const RowSpread& spread) {
  const double u_o = unit_roundoff(*spec.o_dtype);
  const double u_p = unit_roundoff(spec.dtype);
  const double u = unit_roundoff(DType::f32);
  double most = 0;
  for (std::size_t d = 0; d < exact.o.size(); ++d) {
    double term = u_o * std::abs(exact.o[d]) +
                  2 * u_p * (std::abs(exact.o[d]) + spread.quadratic[d]) +
                  8 * u * (spread.absolute[d] + spread.sensitivity[d]);
    if (spec.dtype == DType::f16) term += 0x1p-24 * spread.unweighted[d];
    // The last bit of the smallest numbers that O's dtype has; of fp32's range, what devices flush.
    term += *spec.o_dtype == DType::f16 ? 0x1p-25 : 0x1p-123;
    most = std::max(most, term);
  }
  return most;
}

// The error of one element; infinite where one is finite and the other not.
double error_of(double got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInfinity;
  if (got == want) return 0;
  return std::isfinite(got) && std::isfinite(want) ? std::abs(got - want) : kInfinity;
}

ExpectedRow expected_row(const Head& head, const RowIndex& index) {
  ExpectedRow row{index, exact_row(head, index.query)};
  const Row<float> standard = standard_row(head, index.query);
  const RowSpread spread = row_spread(head, index.query, row.exact);
  for (std::size_t d = 0; d < row.exact.o.size(); ++d) {
    const double error = error_of(standard.o[d], row.exact.o[d]);
    if (std::isfinite(error)) row.standard_error = std::max(row.standard_error, error);
  }
  row.o_allowed = 2 * row.standard_error + o_rounding(head.problem->spec(), row.exact, spread);
  const double lse_error = error_of(standard.lse, row.exact.lse);
  if (std::isfinite(row.exact.lse)) {
    row.lse_allowed =
        8 * unit_roundoff(DType::f32) * (std::abs(row.exact.lse) + 1 + spread.lse_sensitivity);
    if (std::isfinite(lse_error)) row.lse_allowed += 2 * lse_error;
  }
  return row;
}

class Judge {
 public:
  void o_element(const ExpectedRow& row, std::int64_t dim, double got) {
    const double want = row.exact.o[static_cast<std::size_t>(dim)];
    const Deviation deviation{row.index, dim, got, want, error_of(got, want), row.o_allowed};
    result.max_o_error = std::max(result.max_o_error, deviation.error);
    judge(deviation);
  }
  void lse(const ExpectedRow& row, double got) {
    const Deviation deviation{row.index,      -1, got, row.exact.lse, error_of(got, row.exact.lse),
                              row.lse_allowed};
    result.max_lse_error = std::max(result.max_lse_error, deviation.error);
    judge(deviation);
  }

  Comparison result;

 private:
  void judge(const Deviation& deviation) {
    // Written so that a NaN anywhere fails.
    if (!(deviation.error <= deviation.allowed)) ++result.failures;
    if (!(deviation.ratio() <= result.worst.ratio())) result.worst = deviation;
  }
};

}  // namespace

double Deviation::ratio() const {
  if (error == 0) return 0;
  return allowed > 0 ? error / allowed : kInfinity;
}

std::vector<ExpectedRow> expected_rows(const AttentionProblem& problem,
                                       const AttentionTensors& tensors,
                                       const std::vector<RowIndex>& rows, int threads) {
  std::vector<ExpectedRow> expected(rows.size());
  for_each_row(
      problem, tensors, rows,
      [&](std::size_t i, const Head& head) { expected[i] = expected_row(head, rows[i]); }, threads);
  return expected;
}

Comparison compare(const AttentionProblem& problem, const AttentionTensors& tensors,
                   const std::vector<ExpectedRow>& rows) {
  const AttentionSpec& spec = problem.spec();
  Judge judge;
  for (const ExpectedRow& row : rows) {
    const TokenRange queries = token_range(spec.q_lengths, tensors.q_lengths, row.index.batch);
    const std::int64_t first = queries.offset(problem.o(), row.index.query, row.index.head);
    for (std::int64_t d = 0; d < spec.v_dim; ++d) {
      judge.o_element(row, d, load(tensors.o, *spec.o_dtype, first + d * problem.o().dim));
    }
    if (tensors.lse != nullptr) {
      judge.lse(row, tensors.lse[lse_index(problem, tensors, row.index)]);
    }
    judge.result.max_standard_error = std::max(judge.result.max_standard_error, row.standard_error);
  }
  judge.result.rows = static_cast<std::int64_t>(rows.size());
  return judge.result;
}

Comparison compare(const AttentionProblem& problem, const AttentionTensors& tensors,
                   const std::vector<RowIndex>& rows, int threads) {
  return compare(problem, tensors, expected_rows(problem, tensors, rows, threads));
}

std::string to_text(const Comparison& comparison, std::string_view plan, std::uint64_t seed) {
  const Deviation& worst = comparison.worst;
  const std::string element = worst.dim < 0 ? "lse" : fmt::format("o dim {}", worst.dim);
  return fmt::format(
      "{} of {} rows' elements beyond tolerance; worst: batch {}, head {}, row {}, {}: got {:.9g}, "
      "want {:.9g}, error {:.3g}, allowed {:.3g}; seed {}; plan: {}",
      comparison.failures, comparison.rows, worst.index.batch, worst.index.head, worst.index.query,
      element, worst.got, worst.want, worst.error, worst.allowed, seed, plan);
}

}  // namespace tilewright::reference
