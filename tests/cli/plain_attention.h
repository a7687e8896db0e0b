// tests/cli/plain_attention.h: attention in double, in the plainest loops, to judge files by.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace tilewright::test {

/// One sequence. Element e of [heads or kv_heads, tokens, dim] is read through the functions.
struct PlainProblem {
  std::int64_t heads = 1, kv_heads = 1, q_len = 0, kv_len = 0, dim = 0, v_dim = 0;
  std::function<double(std::int64_t head, std::int64_t token, std::int64_t d)> q, k, v;
  double scale = 0;  ///< 0: 1 / sqrt(dim)
  double softcap = 0;
  std::function<bool(std::int64_t query, std::int64_t key)> visible;
  std::function<double(std::int64_t head, std::int64_t query, std::int64_t key)> bias;
  std::function<double(std::int64_t head)> sink;
};

struct PlainRow {
  std::vector<double> o;
  double lse = -std::numeric_limits<double>::infinity();
};

inline PlainRow plain_row(const PlainProblem& p, std::int64_t head, std::int64_t query) {
  const std::int64_t kv_head = head / (p.heads / p.kv_heads);
  PlainRow row{std::vector<double>(static_cast<std::size_t>(p.v_dim))};
  double sum = p.sink ? std::exp(p.sink(head)) : 0;
  for (std::int64_t key = 0; key < p.kv_len; ++key) {
    if (p.visible && !p.visible(query, key)) continue;
    double score = 0;
    for (std::int64_t d = 0; d < p.dim; ++d) score += p.q(head, query, d) * p.k(kv_head, key, d);
    score *= p.scale != 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim));
    if (p.softcap > 0) score = p.softcap * std::tanh(score / p.softcap);
    if (p.bias) score += p.bias(head, query, key);
    const double e = std::exp(score);
    sum += e;
    for (std::int64_t d = 0; d < p.v_dim; ++d) {
      row.o[static_cast<std::size_t>(d)] += e * p.v(kv_head, key, d);
    }
  }
  if (sum > 0) {
    for (double& o : row.o) o /= sum;
    row.lse = std::log(sum);
  }
  return row;
}

}  // namespace tilewright::test
