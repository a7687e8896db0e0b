// examples/learn/matrix.h: what every step shares: a matrix, random numbers, and checks that count.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// Rows of numbers, one after the other in memory. Row i of q is the query of token i, and so on.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;

  Matrix(int row_count, int column_count, float value = 0)
      : rows(row_count),
        columns(column_count),
        values(static_cast<std::size_t>(row_count) * column_count, value) {}

  float* row(int i) { return &values[static_cast<std::size_t>(i) * columns]; }
  const float* row(int i) const { return &values[static_cast<std::size_t>(i) * columns]; }
};

inline Matrix random_matrix(int rows, int columns, unsigned seed) {
  Matrix matrix(rows, columns);
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  for (float& value : matrix.values) value = normal(bits);
  return matrix;
}

inline float dot(const float* a, const float* b, int length) {
  float sum = 0;
  for (int i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

inline float largest_difference(const Matrix& a, const Matrix& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const float difference = std::fabs(a.values[i] - b.values[i]);
    if (!(difference <= largest)) largest = difference;  // also when it is NaN
  }
  return largest;
}

/// How far two correct fp32 programs may be apart: each sums `terms` numbers in its own order.
inline float rounding(int terms, const Matrix& v) {
  float size = 0;
  for (float value : v.values) size = std::max(size, std::fabs(value));
  return static_cast<float>(terms) * std::numeric_limits<float>::epsilon() * size;
}

/// Says whether a claim holds, and remembers if one did not: `return claims.failed();` ends main.
class Claims {
 public:
  void check(bool holds, const std::string& claim) {
    std::printf("  %s  %s\n", holds ? "yes" : "NO ", claim.c_str());
    if (!holds) ++failed_;
  }
  int failed() const { return failed_ == 0 ? 0 : 1; }

 private:
  int failed_ = 0;
};

/// The program's one argument: how many keys a tile holds.
inline int tile_size_argument(int count, char** arguments, int otherwise) {
  if (count < 2) return otherwise;
  char* end = nullptr;
  const long tile_size = std::strtol(arguments[1], &end, 10);
  if (*end == '\0' && tile_size >= 1 && tile_size <= 1000000) return static_cast<int>(tile_size);
  std::fprintf(stderr, "tile_size is '%s'; accepted: 1 to 1000000\n", arguments[1]);
  std::exit(2);
}
