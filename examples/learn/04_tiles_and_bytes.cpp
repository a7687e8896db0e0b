// examples/learn/04_tiles_and_bytes.cpp: query tiles, skipped causal tiles, and every byte counted.
//
// Step 3 still read all of K and V once for every query. A tile of queries shares each key tile
// that was fetched, so K and V are read once for every query *tile*. This is FlashAttention-2's
// order. The fast memory here is a few small buffers; all that crosses to or from it goes through
// load and store, which count. Under a causal mask, key tiles beyond a query tile's last row are
// never read.
#include "standard_attention.h"

struct Count {
  long long bytes_moved = 0;
  long long tiles_visited = 0;
  long long fast_bytes = 0;  ///< the buffers' size, whatever the length
};

static Matrix load(const Matrix& slow, int begin, int rows, Count& count) {
  Matrix tile(rows, slow.columns);
  std::copy(slow.row(begin), slow.row(begin) + tile.values.size(), tile.values.begin());
  count.bytes_moved += static_cast<long long>(tile.values.size() * sizeof(float));
  return tile;
}

static void store(const Matrix& tile, Matrix& slow, int begin, Count& count) {
  std::copy(tile.values.begin(), tile.values.end(), slow.row(begin));
  count.bytes_moved += static_cast<long long>(tile.values.size() * sizeof(float));
}

/// One key tile's part of a query tile's outputs: step 3, for several rows. The tiles' first rows
/// are query `first_query` and key `first_key`.
static void add_key_tile(const Matrix& q, const Matrix& k, const Matrix& v, int first_query,
                         int first_key, bool causal, Matrix& p, std::vector<float>& maximum,
                         std::vector<float>& sum, Matrix& o) {
  const float scale = 1 / std::sqrt(static_cast<float>(q.columns));
  for (int i = 0; i < q.rows; ++i) {
    float new_maximum = maximum[i];
    for (int j = 0; j < k.rows; ++j) {
      const bool visible = !causal || first_key + j <= first_query + i;
      p.row(i)[j] = visible ? scale * dot(q.row(i), k.row(j), q.columns) : -INFINITY;
      new_maximum = std::max(new_maximum, p.row(i)[j]);
    }
    if (new_maximum == -INFINITY) continue;  // nothing seen yet
    const float rescale = std::exp(maximum[i] - new_maximum);
    maximum[i] = new_maximum;
    sum[i] *= rescale;
    for (int c = 0; c < o.columns; ++c) o.row(i)[c] *= rescale;
    for (int j = 0; j < k.rows; ++j) {
      const float weight = std::exp(p.row(i)[j] - new_maximum);
      sum[i] += weight;
      for (int c = 0; c < o.columns; ++c) o.row(i)[c] += weight * v.row(j)[c];
    }
  }
}

static Matrix tiled_attention(const Matrix& q, const Matrix& k, const Matrix& v, int q_rows,
                              int kv_rows, bool causal, Count& count) {
  Matrix o(q.rows, v.columns);
  count.fast_bytes = 4LL * (q_rows * q.columns + kv_rows * k.columns + kv_rows * v.columns +
                            q_rows * kv_rows + q_rows * v.columns + 2 * q_rows);
  for (int first_query = 0; first_query < q.rows; first_query += q_rows) {
    const int queries = std::min(q_rows, q.rows - first_query);
    const Matrix q_tile = load(q, first_query, queries, count);
    Matrix o_tile(queries, v.columns), p_tile(queries, kv_rows);
    std::vector<float> maximum(q_rows, -INFINITY), sum(q_rows);

    const int keys_seen = causal ? std::min(first_query + queries, k.rows) : k.rows;
    for (int first_key = 0; first_key < keys_seen; first_key += kv_rows) {
      const int keys = std::min(kv_rows, k.rows - first_key);
      const Matrix k_tile = load(k, first_key, keys, count);
      const Matrix v_tile = load(v, first_key, keys, count);
      add_key_tile(q_tile, k_tile, v_tile, first_query, first_key, causal, p_tile, maximum, sum,
                   o_tile);
      ++count.tiles_visited;
    }
    for (int i = 0; i < queries; ++i) {
      for (int c = 0; c < o.columns; ++c) o_tile.row(i)[c] /= sum[i];
    }
    store(o_tile, o, first_query, count);
  }
  return o;
}

int main() {
  Claims claims;
  const int q_rows = 16, kv_rows = 8, dim = 16;

  std::printf("Tiles of %d queries by %d keys, dim %d, fp32:\n", q_rows, kv_rows, dim);
  std::printf("  %7s %7s %9s %14s %14s %12s\n", "tokens", "causal", "tiles", "tiled bytes",
              "standard bytes", "fast memory");
  double last_bytes = 0, growth = 0;
  for (const bool causal : {false, true}) {
    for (const int tokens : {64, 128, 256, 300}) {
      const Matrix q = random_matrix(tokens, dim, 1), k = random_matrix(tokens, dim, 2),
                   v = random_matrix(tokens, dim, 3);
      Count count;
      const Matrix o = tiled_attention(q, k, v, q_rows, kv_rows, causal, count);
      // q, k, v read and o written once, S and P each written and read once.
      const long long standard_bytes = 4LL * (4 * tokens * dim + 4LL * tokens * tokens);
      std::printf("  %7d %7s %9lld %14lld %14lld %12lld\n", tokens, causal ? "yes" : "no",
                  count.tiles_visited, count.bytes_moved, standard_bytes, count.fast_bytes);
      if (largest_difference(o, standard_attention(q, k, v, causal)) > rounding(tokens, v)) {
        claims.check(false, "the result is that of standard attention");
      }

      // The bytes are no accident: q and o once, and k and v once for each query tile.
      long long expected = 4LL * 2 * tokens * dim;
      for (int first = 0; first < tokens; first += q_rows) {
        const int seen = causal ? std::min(first + q_rows, tokens) : tokens;
        const int whole_tiles = std::min((seen + kv_rows - 1) / kv_rows * kv_rows, tokens);
        expected += 4LL * 2 * whole_tiles * dim;
      }
      if (count.bytes_moved != expected) claims.check(false, "bytes are as the formula says");
      if (tokens == 256 && !causal) growth = static_cast<double>(count.bytes_moved) / last_bytes;
      last_bytes = static_cast<double>(count.bytes_moved);
    }
  }
  claims.check(claims.failed() == 0, "every result is that of standard attention");
  claims.check(claims.failed() == 0, "every count of bytes equals its formula");
  std::printf("\nFrom 128 to 256 tokens, traffic grew %.2f times:\n", growth);
  claims.check(std::fabs(growth - 68.0 / 18) < 1e-12,
               "nearly 4: traffic is still quadratic, though taller query tiles divide it");
  std::printf(
      "\nWhat became linear is memory: no S, no P, and fast memory that does not grow.\n"
      "Larger query tiles move fewer bytes, until they no longer fit. Next: who chooses?\n");
  return claims.failed();
}
