// tests/plan/traffic_test.cpp: the closed forms against hand-derived formulae and published cases.
#include "plan/traffic.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TrafficShape square(Index n, Index d, Index element_bytes, Index heads = 1) {
  TrafficShape shape;
  shape.sequences = heads;
  shape.kv_sequences = heads;
  shape.qk_dim = d;
  shape.v_dim = d;
  shape.element_bytes = element_bytes;
  shape.o_bytes = element_bytes;
  shape.rule = schedule::make_mask_rule(n, n, false, true, -1, -1);
  return shape;
}

std::int64_t bytes_of(const Traffic& traffic, std::string_view tensor) {
  for (const TensorTraffic& t : traffic.tensors) {
    if (t.tensor == tensor) return t.bytes_read + t.bytes_written;
  }
  return 0;
}

TEST(Traffic, QueryOuterReadsKeysOncePerQueryTile) {
  const Index n = 1000, d = 64, e = 2, q_rows = 128;
  const Index q_tiles = 8;
  const Traffic traffic = q_outer_traffic(square(n, d, e), {q_rows, 96}, 1, {});
  EXPECT_EQ(traffic.bytes(), 2 * n * d * e + 4 * n + q_tiles * 2 * n * d * e);
}

TEST(Traffic, KeyOuterSpillsTheOutputOncePerKeyTile) {
  const Index n = 1000, d = 64, e = 2, kv_rows = 96;
  const Index kv_tiles = 11;
  const Traffic traffic = kv_outer_traffic(square(n, d, e), {128, kv_rows});
  EXPECT_EQ(traffic.bytes(), 2 * n * d * e + kv_tiles * (n * d * e + 2 * n * d * 4 + 16 * n));
}

TEST(Traffic, StandardWritesAndReadsScoresAndProbabilities) {
  const Index n = 512, d = 64, e = 2;
  // One query tile: the operands of both products move once.
  const Traffic traffic = standard_traffic(square(n, d, e), {n, 128}, {});
  EXPECT_EQ(traffic.bytes(), 4 * n * d * e + 4 * e * n * n + 4 * n);
  const Traffic long_rows =
      standard_traffic(square(n, d, e), {n, 128}, {.row_fits = false, .mask_fused = true});
  EXPECT_EQ(long_rows.bytes() - traffic.bytes(), e * n * n);
  const Traffic mask_pass =
      standard_traffic(square(n, d, e), {n, 128}, {.row_fits = true, .mask_fused = false});
  EXPECT_EQ(mask_pass.bytes() - traffic.bytes(), 2 * e * n * n);
}

TEST(Traffic, CausalSkipsTilesAboveTheDiagonal) {
  const Index n = 1024, d = 64, e = 2, q_rows = 128, kv_rows = 96;
  TrafficShape shape = square(n, d, e);
  shape.rule = schedule::make_mask_rule(n, n, true, true, -1, -1);
  Index keys = 0;
  for (Index i = 0; i < n / q_rows; ++i) {
    const Index reach = schedule::min(n, (i + 1) * q_rows);
    keys += schedule::min(n, schedule::ceil_div(reach, kv_rows) * kv_rows);
  }
  const Traffic traffic = q_outer_traffic(shape, {q_rows, kv_rows}, 1, {});
  EXPECT_EQ(traffic.bytes(), 2 * n * d * e + 4 * n + 2 * d * e * keys);
}

TEST(Traffic, GroupedHeadsShareTheFloorButNotTheTileReads) {
  TrafficShape grouped = square(1024, 64, 2, 8);
  grouped.kv_sequences = 2;
  const TrafficShape full = square(1024, 64, 2, 8);
  EXPECT_EQ(q_outer_traffic(grouped, {128, 64}, 1, {}), q_outer_traffic(full, {128, 64}, 1, {}));
  EXPECT_EQ(bytes_of(compulsory_traffic(grouped), "k") * 4,
            bytes_of(compulsory_traffic(full), "k"));
  const Index n = 1024, d = 64, e = 2;
  EXPECT_EQ(compulsory_traffic(grouped).bytes(), n * e * d * (2 * 8 + 2 * 2) + 4 * n * 8);
}

TEST(Traffic, PackedHeadsReadTheirSharedKeysOnce) {
  TrafficShape shape = square(64, 128, 2, 8);
  shape.kv_sequences = 1;
  const Traffic apart = q_outer_traffic(shape, {16, 64}, 1, {});
  shape.packed_heads = 8;
  const Traffic packed = q_outer_traffic(shape, {16 * 8, 64}, 1, {});
  EXPECT_EQ(bytes_of(packed, "k") * 8, bytes_of(apart, "k"));
  EXPECT_EQ(bytes_of(packed, "q"), bytes_of(apart, "q"));
  EXPECT_EQ(bytes_of(packed, "o"), bytes_of(apart, "o"));
}

TEST(Traffic, SplitsWriteAndReadPartialResults) {
  const Index n = 1, keys = 4096, d = 128, splits = 8;
  TrafficShape shape = square(n, d, 2);
  shape.rule = schedule::make_mask_rule(n, keys, true, true, -1, -1);
  const Traffic one = q_outer_traffic(shape, {16, 128}, 1, {});
  const Traffic split = q_outer_traffic(shape, {16, 128}, splits, {});
  EXPECT_EQ(bytes_of(split, "partials"), 2 * splits * (d + 1) * 4);
  EXPECT_EQ(bytes_of(split, "k"), bytes_of(one, "k"));
  EXPECT_EQ(bytes_of(split, "q"), splits * bytes_of(one, "q"));
}

TEST(Traffic, DoublingTheLengthApproachesFourTimes) {
  const auto ratio = [](Index n) {
    const Tile tile{128, 128};
    return static_cast<double>(q_outer_traffic(square(2 * n, 128, 2), tile, 1, {}).bytes()) /
           static_cast<double>(q_outer_traffic(square(n, 128, 2), tile, 1, {}).bytes());
  };
  EXPECT_NEAR(ratio(1024), 3.78, 0.005);
  EXPECT_NEAR(ratio(8192), 3.97, 0.005);
  EXPECT_NEAR(ratio(65536), 3.996, 0.0005);
}

TEST(Traffic, PublishedCaseOfBothOrders) {
  // 16 heads, 8192 tokens, dim 128, bf16; the key-outer paper's tile rule for 232448 bytes.
  const TrafficShape shape = square(8192, 128, 2, 16);
  const double gib = 1024.0 * 1024 * 1024;
  EXPECT_NEAR(static_cast<double>(q_outer_traffic(shape, {128, 128}, 1, {}).bytes()) / gib, 4.06,
              0.005);
  const Index kv_rows = schedule::ceil_div(232448 / 2, 4 * 128);
  EXPECT_NEAR(
      static_cast<double>(kv_outer_traffic(shape, {schedule::min(kv_rows, 128), kv_rows}).bytes()) /
          gib,
      5.9, 0.05);
  EXPECT_NEAR(static_cast<double>(compulsory_traffic(shape).bytes()) / (1024 * 1024), 128.5, 0.05);
}

TEST(Traffic, HandOffThroughMemoryMovesScoresTwice) {
  const Index n = 1024, d = 128, e = 2;
  const Traffic traffic =
      q_outer_traffic(square(n, d, e), {128, 128}, 1, {.s = true, .p = true, .o = false});
  EXPECT_EQ(bytes_of(traffic, "s") + bytes_of(traffic, "p"), 2 * (4 + 2) * n * n);
}

TEST(Traffic, NothingMovesForNothing) {
  TrafficShape shape = square(0, 64, 2);
  EXPECT_EQ(q_outer_traffic(shape, {128, 64}, 1, {}).bytes(), 0);
  shape.rule = schedule::make_mask_rule(5, 0, true, true, -1, -1);
  // No key to see: O is zero and the LSE minus infinity, and both are written.
  EXPECT_EQ(q_outer_traffic(shape, {128, 64}, 1, {}).bytes(), 5 * 64 * 2 + 5 * 4);
}

}  // namespace
}  // namespace tilewright
