// examples/learn/01_standard.cpp: standard attention, and the matrix that makes it expensive.
//
// The algorithm is in standard_attention.h; read that first.
#include "standard_attention.h"

int main() {
  Claims claims;

  std::printf("One query, two keys, scores (0, ln 3), values (4, 8):\n");
  Matrix q(1, 1, 1.0f), k(2, 1), v(2, 1);
  k.values = {0, std::log(3.0f)};
  v.values = {4, 8};
  const float answer = standard_attention(q, k, v).values[0];
  std::printf("  weights are 1/4 and 3/4, so o = 4/4 + 3*8/4 = %g\n", answer);
  claims.check(std::fabs(answer - 7) < rounding(2, v), "o is 7");

  std::printf("\nWeights sum to 1, so when every value is 1, every output is 1:\n");
  const int tokens = 200, dim = 16;
  const Matrix ones(tokens, dim, 1.0f);
  const Matrix mean =
      standard_attention(random_matrix(tokens, dim, 1), random_matrix(tokens, dim, 2), ones);
  claims.check(largest_difference(mean, ones) <= rounding(tokens, ones), "every output is 1");

  std::printf("\nBytes of fp32 for one head of dim 64. S is tokens x tokens:\n");
  std::printf("  %10s %16s %16s %8s\n", "tokens", "q k v o", "S", "times");
  double times = 0;
  for (double n = 1024; n <= 65536; n *= 8) {
    const double operands = 4 * n * 64 * 4, score = n * n * 4;
    times = score / operands;
    std::printf("  %10.0f %12.1f MiB %12.1f MiB %7.0fx\n", n, operands / 1048576, score / 1048576,
                times);
  }
  claims.check(times == 256, "at 65,536 tokens S is 256 times as large as all else together");
  std::printf("\nS is written and read back, and so is P. Next: can we do without them?\n");
  return claims.failed();
}
