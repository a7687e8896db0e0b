// examples/learn/02_tempting_but_wrong.cpp: the loop that comes to mind first, and why it is wrong.
//
// Cut K and V into tiles, do attention on each tile, add the parts: S is only ever a tile wide.
// But softmax divides by a sum over *all* keys, and a tile knows only its own: each tile's weights
// sum to 1 by themselves, so together they sum to the number of tiles.
//
//   02_tempting_but_wrong [tile_size]
#include "standard_attention.h"

static Matrix some_rows(const Matrix& matrix, int begin, int end) {
  Matrix part(end - begin, matrix.columns);
  std::copy(matrix.row(begin), matrix.row(begin) + part.values.size(), part.values.begin());
  return part;
}

/// WRONG on purpose: the softmax of each tile by itself, the parts added.
static Matrix each_tile_by_itself(const Matrix& q, const Matrix& k, const Matrix& v,
                                  int tile_size) {
  Matrix o(q.rows, v.columns);
  for (int begin = 0; begin < k.rows; begin += tile_size) {
    const int end = std::min(begin + tile_size, k.rows);
    const Matrix part = standard_attention(q, some_rows(k, begin, end), some_rows(v, begin, end));
    for (std::size_t i = 0; i < o.values.size(); ++i) o.values[i] += part.values[i];
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
  const float truth = standard_attention(q, k, v).values[0];
  const float loop = each_tile_by_itself(q, k, v, tile_size).values[0];
  const float claimed = tile_size == 1 ? 12.0f : 7.0f;  // one tile of everything cannot go wrong
  std::printf("  standard attention  %g\n  each tile by itself %g\n", truth, loop);
  claims.check(std::fabs(truth - 7) < rounding(2, v), "the right answer is 7");
  claims.check(std::fabs(loop - claimed) < rounding(2, v),
               claimed == 12
                   ? "the loop says 12, larger than any value there is"
                   : "with a single tile the loop is right, which is how it passes tests");

  std::printf("\n100 keys whose values are all 1, so the answer is 1:\n");
  const int tokens = 100, dim = 8, tiles = (tokens + tile_size - 1) / tile_size;
  const Matrix ones(tokens, dim, 1.0f), as_many(tokens, dim, static_cast<float>(tiles));
  const Matrix queries = random_matrix(tokens, dim, 1), keys = random_matrix(tokens, dim, 2);
  const Matrix sums = each_tile_by_itself(queries, keys, ones, tile_size);
  std::printf("  standard attention  %g\n  each tile by itself %g\n",
              standard_attention(queries, keys, ones).values[0], sums.values[0]);
  claims.check(largest_difference(sums, as_many) <= rounding(tokens, as_many),
               "the loop gives the number of tiles, " + std::to_string(tiles));

  std::printf(
      "\nDividing by the number of tiles does not help: the example would give 6, not 7,\n"
      "because a tile of large scores deserves more weight than one of small scores.\n"
      "Next: what must a tile hand on, so that the parts can be added?\n");
  return claims.failed();
}
