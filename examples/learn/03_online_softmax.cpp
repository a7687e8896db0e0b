// examples/learn/03_online_softmax.cpp: tile by tile and exact, with a running maximum and sum.
//
// A row of softmax needs its maximum m and its sum l = sum of exp(score - m) over all keys. Neither
// is known before the last tile, but both can be kept up to date. When a tile raises the maximum
// from m to m', everything summed so far was measured against the old one; multiplying it by
// exp(m - m') measures it against the new one. That factor, applied to l and to o, is the whole
// trick (Milakov and Gimelshein 2018), and FlashAttention is built on it (Dao et al. 2022).
//
//   03_online_softmax [tile_size]
#include "standard_attention.h"

static bool trace = false;

static Matrix online_attention(const Matrix& q, const Matrix& k, const Matrix& v, int tile_size) {
  const float scale = 1 / std::sqrt(static_cast<float>(q.columns));
  Matrix o(q.rows, v.columns);
  std::vector<float> p(static_cast<std::size_t>(std::min(tile_size, k.rows)));  // one tile of a row

  for (int i = 0; i < q.rows; ++i) {
    float maximum = -INFINITY, sum = 0;
    for (int begin = 0; begin < k.rows; begin += tile_size) {
      const int keys = std::min(tile_size, k.rows - begin);

      float new_maximum = maximum;
      for (int j = 0; j < keys; ++j) {
        p[j] = scale * dot(q.row(i), k.row(begin + j), q.columns);
        new_maximum = std::max(new_maximum, p[j]);
      }

      const float rescale = std::exp(maximum - new_maximum);  // 0 at the first tile
      sum *= rescale;
      for (int c = 0; c < v.columns; ++c) o.row(i)[c] *= rescale;
      maximum = new_maximum;

      for (int j = 0; j < keys; ++j) {
        p[j] = std::exp(p[j] - maximum);
        sum += p[j];
        for (int c = 0; c < v.columns; ++c) o.row(i)[c] += p[j] * v.row(begin + j)[c];
      }
      if (trace) {
        std::printf("  after key %d: maximum %.4f, rescale %.4f, sum %.4f, o %.4f\n",
                    begin + keys - 1, maximum, rescale, sum, o.row(i)[0]);
      }
    }
    for (int c = 0; c < v.columns; ++c) o.row(i)[c] /= sum;  // once, at the end
  }
  return o;
}

int main(int argument_count, char** arguments) {
  const int tile_size = tile_size_argument(argument_count, arguments, 1);
  Claims claims;

  std::printf("Scores (0, ln 3), values (4, 8), tiles of %d key(s):\n", tile_size);
  Matrix q(1, 1, 1.0f), k(2, 1), v(2, 1);
  k.values = {0, std::log(3.0f)};
  v.values = {4, 8};
  trace = true;
  const float answer = online_attention(q, k, v, tile_size).values[0];
  trace = false;
  std::printf("  o / sum = %g\n", answer);
  claims.check(std::fabs(answer - 7) < rounding(2, v), "the answer is 7");

  std::printf("\nRandom inputs, 100 tokens, dim 16, against standard attention:\n");
  const int tokens = 100, dim = 16;
  const Matrix keys = random_matrix(tokens, dim, 2), values = random_matrix(tokens, dim, 3);
  for (const float size : {1.0f, 1000.0f}) {  // 1000: scores that exp alone would overflow on
    Matrix queries = random_matrix(tokens, dim, 1);
    for (float& value : queries.values) value *= size;
    const Matrix truth = standard_attention(queries, keys, values);
    float worst = largest_difference(online_attention(queries, keys, values, tile_size), truth);
    for (int tile = 1; tile <= tokens + 1; ++tile) {  // ragged last tiles included
      const Matrix o = online_attention(queries, keys, values, tile);
      worst = std::max(worst, largest_difference(o, truth));
    }
    std::printf("  queries times %-5g largest difference %.1e, rounding allows %.1e\n", size, worst,
                rounding(tokens, values));
    claims.check(worst <= rounding(tokens, values), "right for every tile size from 1 to 101");
  }
  std::printf("\nNothing is longer than a tile now. Next: how often does each byte move?\n");
  return claims.failed();
}
