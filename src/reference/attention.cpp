// src/reference/attention.cpp: attention row by row in fp64, and standard attention in fp32.
#include "reference/attention.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

#include "reference/random.h"

namespace tilewright::reference {
namespace {

template <typename Real>
Real highest(const std::vector<Score<Real>>& row, Real sink) {
  Real max = sink;
  for (const Score<Real>& score : row) {
    // A NaN score makes the row NaN.
    if (std::isnan(score.value)) return score.value;
    max = std::max(max, score.value);
  }
  return max;
}

// Both precisions of the one algorithm. p_dtype: what P is rounded to before it meets V.
template <typename Real>
Row<Real> softmax_row(const Head& head, std::int64_t query, DType p_dtype) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const std::int64_t v_dim = head.problem->spec().v_dim;
  Row<Real> result{std::vector<Real>(static_cast<std::size_t>(v_dim)), -kInfinity};
  const auto row = scores<Real>(head, query);
  const auto sink = static_cast<Real>(head.sink);
  const Real max = highest(row, sink);
  if (max == -kInfinity) return result;
  Real denominator = sink == -kInfinity ? 0 : std::exp(sink - max);
  for (const Score<Real>& score : row) {
    const Real p = std::exp(score.value - max);
    denominator += p;
    const Real weight =
        p_dtype == DType::f32 ? p : static_cast<Real>(rounded(p_dtype, static_cast<float>(p)));
    const float* v = head.v.data() + score.key * v_dim;
    for (std::int64_t d = 0; d < v_dim; ++d) result.o[static_cast<std::size_t>(d)] += weight * v[d];
  }
  for (Real& o : result.o) o /= denominator;
  result.lse = max + std::log(denominator);
  return result;
}

}  // namespace

std::vector<RowIndex> all_rows(const AttentionProblem& problem, const AttentionTensors& tensors) {
  const AttentionSpec& spec = problem.spec();
  std::vector<RowIndex> rows;
  for (std::int64_t batch = 0; batch < spec.batch; ++batch) {
    const std::int64_t tokens = token_range(spec.q_lengths, tensors.q_lengths, batch).tokens;
    for (std::int64_t head = 0; head < spec.heads; ++head) {
      for (std::int64_t query = 0; query < tokens; ++query) rows.push_back({batch, head, query});
    }
  }
  return rows;
}

std::vector<RowIndex> sample_rows(const AttentionProblem& problem, const AttentionTensors& tensors,
                                  std::int64_t count, std::uint64_t seed) {
  const AttentionSpec& spec = problem.spec();
  std::vector<RowIndex> rows;
  if (spec.batch == 0) return rows;
  Random random(seed);
  const auto add = [&](std::int64_t batch, std::int64_t head, double where) {
    const std::int64_t tokens = token_range(spec.q_lengths, tensors.q_lengths, batch).tokens;
    if (tokens == 0) return;
    const auto query = static_cast<std::int64_t>(where * static_cast<double>(tokens));
    rows.push_back({batch, head, std::min(query, tokens - 1)});
  };
  // The ends first: tails and the last head are where faults live.
  add(0, 0, 0.0);
  add(spec.batch - 1, spec.heads - 1, 1.0);
  for (std::int64_t i = 2; i < count; ++i) {
    const std::int64_t batch = random.integer(0, spec.batch - 1);
    const std::int64_t head = random.integer(0, spec.heads - 1);
    add(batch, head, random.uniform());
  }
  const auto key = [](const RowIndex& r) { return std::tie(r.batch, r.head, r.query); };
  std::sort(rows.begin(), rows.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

Row<double> exact_row(const Head& head, std::int64_t query) {
  return softmax_row<double>(head, query, DType::f32);
}

Row<float> standard_row(const Head& head, std::int64_t query) {
  const AttentionSpec& spec = head.problem->spec();
  Row<float> row = softmax_row<float>(head, query, spec.dtype);
  for (float& o : row.o) o = rounded(*spec.o_dtype, o);
  return row;
}

RowSpread row_spread(const Head& head, std::int64_t query, const Row<double>& exact) {
  const std::int64_t v_dim = head.problem->spec().v_dim;
  const auto dims = static_cast<std::size_t>(v_dim);
  RowSpread spread{std::vector<double>(dims), std::vector<double>(dims), std::vector<double>(dims),
                   std::vector<double>(dims)};
  double highest_p = 0;
  for (const Score<double>& score : scores<double>(head, query)) {
    const double p = std::exp(score.value - exact.lse);
    highest_p = std::max(highest_p, p);
    spread.lse_sensitivity += p * score.magnitude;
    const float* v = head.v.data() + score.key * v_dim;
    for (std::size_t d = 0; d < dims; ++d) {
      spread.absolute[d] += p * std::abs(v[d]);
      spread.quadratic[d] += p * p * v[d] * v[d];
      spread.sensitivity[d] += p * score.magnitude * std::abs(v[d] - exact.o[d]);
      spread.unweighted[d] += static_cast<double>(v[d]) * v[d];
    }
  }
  for (std::size_t d = 0; d < dims; ++d) {
    spread.quadratic[d] = std::sqrt(spread.quadratic[d]);
    spread.unweighted[d] = highest_p * std::sqrt(spread.unweighted[d]);
  }
  return spread;
}

void for_each_row(const AttentionProblem& problem, const AttentionTensors& tensors,
                  const std::vector<RowIndex>& rows,
                  const std::function<void(std::size_t i, const Head& head)>& visit, int threads) {
  constexpr std::size_t kRowsATurn = 64;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Head head;
    for (;;) {
      const std::size_t begin = next.fetch_add(kRowsATurn);
      for (std::size_t i = begin; i < std::min(begin + kRowsATurn, rows.size()); ++i) {
        if (head.problem == nullptr || head.batch != rows[i].batch || head.head != rows[i].head) {
          head = gather_head(problem, tensors, rows[i].batch, rows[i].head);
        }
        visit(i, head);
      }
      if (begin >= rows.size()) return;
    }
  };
  const std::size_t turns = (rows.size() + kRowsATurn - 1) / kRowsATurn;
  const std::size_t wanted =
      threads > 0 ? static_cast<std::size_t>(threads) : std::thread::hardware_concurrency();
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(wanted, turns); ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

std::vector<Row<double>> attention(const AttentionProblem& problem, const AttentionTensors& tensors,
                                   const std::vector<RowIndex>& rows, int threads) {
  std::vector<Row<double>> result(rows.size());
  for_each_row(
      problem, tensors, rows,
      [&](std::size_t i, const Head& head) { result[i] = exact_row(head, rows[i].query); },
      threads);
  return result;
}

}  // namespace tilewright::reference
