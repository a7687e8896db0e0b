// tests/conformance/mask_probe_test.cpp: reads the mask and the row count bit by bit, at every tile
// edge, with no tolerance to hide behind.
//
// q = 0 makes every score equal, so each of a row's n visible keys weighs exactly 1, the sum is
// exactly n, and one-hot values bring each weight out by itself: 1/n where the key is seen, 0 where
// not. What a mask does wrong, it does here in full view.
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/check.h"
#include "reference/element.h"
#include "reference/random.h"
#include "reference/random_problem.h"
#include "reference/tolerance.h"
#include "support/scale.h"

namespace tilewright::conformance {
namespace {

constexpr std::int64_t kProbeWidth = 256;

// Weights of the keys [first, first + v_dim) against what the reference's mask says.
void expect_weights(ProblemData& data, std::int64_t first) {
  const AttentionProblem& problem = data.problem();
  const AttentionTensors t = data.tensors();
  std::int64_t wrong = 0;
  std::string where;
  const auto rows = all_rows(problem, t);
  reference::for_each_row(
      problem, t, rows,
      [&](std::size_t i, const reference::Head& head) {
        const std::int64_t query = rows[i].query;
        const auto seen = reference::scores<double>(head, query);
        std::vector<bool> visible(static_cast<std::size_t>(head.keys.tokens));
        for (const auto& score : seen) visible[static_cast<std::size_t>(score.key)] = true;
        const double weight = 1.0 / static_cast<double>(std::max<std::size_t>(seen.size(), 1));
        const std::int64_t at = head.queries.offset(problem.o(), query, rows[i].head);
        for (std::int64_t d = 0; d < problem.spec().v_dim; ++d) {
          const std::int64_t key = first + d;
          const double got = reference::load(t.o, problem.o_dtype(), at + d * problem.o().dim);
          const bool see = key < head.keys.tokens && visible[static_cast<std::size_t>(key)];
          // A division, or a multiplication with a rounded reciprocal.
          const double slack = 2 * reference::unit_roundoff(problem.o_dtype()) * weight;
          if (see ? std::abs(got - weight) <= slack : got == 0) continue;
          if (wrong++ == 0) {
            where = "batch " + std::to_string(rows[i].batch) + " head " +
                    std::to_string(rows[i].head) + " row " + std::to_string(query) + " key " +
                    std::to_string(key) + ": weight " + std::to_string(got) + ", want " +
                    std::to_string(see ? weight : 0.0);
          }
        }
        const float lse = t.lse[lse_index(problem, t, rows[i])];
        const double want = seen.empty() ? -INFINITY : std::log(static_cast<double>(seen.size()));
        if (!(lse == want || std::abs(lse - want) < 2e-6)) {
          if (wrong++ == 0) {
            where = "row " + std::to_string(query) + ": lse " + std::to_string(lse) + ", want " +
                    std::to_string(want);
          }
        }
      },
      1);
  EXPECT_EQ(wrong, 0) << where;
}

// Of the spec's own head dims: one-hot values of v_dim keys at a time.
void probe_dims(const Case& what) {
  for (std::int64_t first = 0; first < std::max<std::int64_t>(what.spec.kv_lengths.max_tokens, 1);
       first += what.spec.v_dim) {
    ProblemData data = make(what);
    data.set(TensorId::q, [](const ElementIndex&) { return 0.0f; });
    data.set(TensorId::v,
             [&](const ElementIndex& e) { return e.token == first + e.dim ? 1.0f : 0.0f; });
    for (const auto& variant : variants()) {
      SCOPED_TRACE(variant->name() + ": " + to_text(what));
      if (run_one(*variant, data)) expect_weights(data, first);
    }
  }
}

void probe(Case what) {
  what.spec.qk_dim = std::min<std::int64_t>(what.spec.qk_dim, 16);
  what.spec.v_dim = kProbeWidth;
  probe_dims(what);
}

std::vector<Mask> masks_of(std::int64_t q_len, std::int64_t kv_len) {
  std::vector<Mask> masks;
  for (const Diagonal diagonal : {Diagonal::bottom_right, Diagonal::top_left}) {
    masks.push_back({true, diagonal});
    for (const auto& [left, right] :
         std::initializer_list<std::pair<std::int64_t, std::int64_t>>{{0, 0},
                                                                      {0, -1},
                                                                      {-1, 0},
                                                                      {1, 1},
                                                                      {16, 15},
                                                                      {64, -1},
                                                                      {-1, 17},
                                                                      {kv_len - 1, 0},
                                                                      {q_len, kv_len}}) {
      masks.push_back({false, diagonal, left, right});
    }
    masks.push_back({true, diagonal, 31, 8});
  }
  masks.push_back({});
  return masks;
}

// Every length around the edges of the forced tiles (1, 13, 48 queries; 16, 32, 64 keys) and of the
// planner's own.
TEST(MaskProbe, fixed_lengths_around_tile_edges) {
  reference::Random random(test::first_seed(11));
  const auto edge = [&] {
    return random.choose<std::int64_t>({1,   2,   12,  13,  14,  15,  16,  17,  31, 32,
                                        33,  47,  48,  49,  63,  64,  65,  95,  96, 97,
                                        127, 128, 129, 191, 192, 193, 255, 256, 257});
  };
  for (std::int64_t i = 0; i < test::scaled(60); ++i) {
    const std::int64_t q_len = edge();
    const std::int64_t kv_len = edge();
    Case what = fixed_case(q_len, kv_len, random.choose({DType::f32, DType::bf16, DType::f16}));
    const auto masks = masks_of(q_len, kv_len);
    what.spec.mask = masks[static_cast<std::size_t>(random.integer(0, std::ssize(masks) - 1))];
    probe(what);
  }
}

TEST(MaskProbe, every_mask_on_a_small_rectangle) {
  for (const auto& [q_len, kv_len] :
       std::initializer_list<std::pair<std::int64_t, std::int64_t>>{{17, 17}, {5, 49}, {49, 5}}) {
    for (const Mask& mask : masks_of(q_len, kv_len)) {
      Case what = fixed_case(q_len, kv_len);
      what.spec.mask = mask;
      probe(what);
    }
  }
}

// Backends choose tiles by head dim, and not only by length: each tile's own edges, in queries and
// in keys, one and two tiles in. The fewer variants a backend has, the more cases each faces.
TEST(MaskProbe, tile_edges_of_every_head_dim) {
  reference::Random random(test::first_seed(12));
  const auto around = [&](std::initializer_list<std::int64_t> edges) {
    return std::max<std::int64_t>(
        1, random.choose(edges) * random.integer(1, 2) + random.integer(-1, 1));
  };
  const std::int64_t cases = test::scaled(48) / std::ssize(variants()) + 1;
  for (const auto& [qk_dim, v_dim] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {64, 64}, {96, 96}, {128, 128}, {192, 128}, {192, 192}, {256, 256}}) {
    for (std::int64_t i = 0; i < cases; ++i) {
      const std::int64_t q_len = around({64, 128, 192});
      const std::int64_t kv_len = around({64, 80, 96, 112, 128, 144, 160, 176, 192});
      Case what = fixed_case(q_len, kv_len, random.choose({DType::bf16, DType::f16}));
      what.spec.qk_dim = qk_dim;
      what.spec.v_dim = v_dim;
      const auto masks = masks_of(q_len, kv_len);
      what.spec.mask = masks[static_cast<std::size_t>(random.integer(0, std::ssize(masks) - 1))];
      // Equal scores stay equal under a softcap, whose kernels have tiles of their own.
      what.spec.softcap = random.choose({0.0, 0.0, 30.0});
      probe_dims(what);
    }
  }
}

// Keys beyond one probe's width, so that skipped tiles in the middle of a long row are seen too.
TEST(MaskProbe, long_rows) {
  for (const Mask& mask : {Mask{}, Mask{true}, Mask{false, Diagonal::bottom_right, 300, 5}}) {
    Case what = fixed_case(3, 1000);
    what.spec.mask = mask;
    probe(what);
  }
}

TEST(MaskProbe, grouped_heads_and_ragged_batches) {
  for (const LengthKind kind : {LengthKind::per_sequence, LengthKind::cumulative}) {
    for (const bool causal : {false, true}) {
      Case what = fixed_case(40, 70, DType::bf16);
      what.spec.batch = 4;
      what.spec.heads = 6;
      what.spec.kv_heads = 2;
      what.spec.q_lengths.kind = what.spec.kv_lengths.kind = kind;
      what.spec.mask.causal = causal;
      if (kind == LengthKind::per_sequence) {
        what.q_lengths = {40, 0, 17, 1};
        what.kv_lengths = {70, 33, 16, 0};
      } else {
        what.q_lengths = {0, 40, 40, 57, 58};
        what.kv_lengths = {0, 70, 103, 119, 119};
        what.spec.q_lengths.total_tokens = 58;
        what.spec.kv_lengths.total_tokens = 119;
      }
      probe(what);
    }
  }
}

TEST(MaskProbe, boolean_bias_with_a_mask) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Case what = fixed_case(50, 90);
    what.seed = seed;
    what.spec.heads = what.spec.kv_heads = 2;
    what.spec.mask = {seed % 2 == 0, Diagonal::bottom_right, 20, 30};
    what.spec.bias = {BiasKind::boolean, DType::f32, 0, seed > 2 ? 50 * 90 : 0, 90, 1};
    probe(what);
  }
}

}  // namespace
}  // namespace tilewright::conformance
