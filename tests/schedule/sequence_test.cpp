// tests/schedule/sequence_test.cpp: no content of a length array leads outside the tensors.
#include "schedule/sequence.h"

#include <gtest/gtest.h>

#include <limits>

#include "reference/random.h"

namespace tilewright::schedule {
namespace {

TEST(Sequence, plain_lengths_and_offsets) {
  const int lengths[] = {3, 0, 8};
  EXPECT_EQ(padded_sequence(lengths, 0, 8).tokens, 3);
  EXPECT_EQ(padded_sequence(lengths, 1, 8).tokens, 0);
  EXPECT_EQ(padded_sequence(lengths, 2, 8).first_row, 0);
  const int offsets[] = {0, 5, 5, 12};
  EXPECT_EQ(packed_sequence(offsets, 0, 7, 12).tokens, 5);
  EXPECT_EQ(packed_sequence(offsets, 1, 7, 12).tokens, 0);
  EXPECT_EQ(packed_sequence(offsets, 2, 7, 12).first_row, 5);
  EXPECT_EQ(packed_sequence(offsets, 2, 7, 12).tokens, 7);
}

TEST(Sequence, any_content_stays_inside_the_bounds) {
  reference::Random random(41);
  for (int round = 0; round < 20000; ++round) {
    int values[2];
    for (int& value : values) {
      value = random.chance(0.5) ? static_cast<int>(random.integer(-20, 40))
                                 : static_cast<int>(random.bits());
      if (random.chance(0.1)) value = std::numeric_limits<int>::min();
      if (random.chance(0.1)) value = std::numeric_limits<int>::max();
    }
    const Index bound = random.integer(0, 20);
    const Index total = random.integer(0, 30);
    const Sequence padded = padded_sequence(values, 0, bound);
    ASSERT_EQ(padded.first_row, 0);
    ASSERT_GE(padded.tokens, 0);
    ASSERT_LE(padded.tokens, bound);
    const Sequence packed = packed_sequence(values, 0, bound, total);
    ASSERT_GE(packed.first_row, 0);
    ASSERT_GE(packed.tokens, 0);
    ASSERT_LE(packed.tokens, bound);
    ASSERT_LE(packed.first_row + packed.tokens, total);
  }
}

}  // namespace
}  // namespace tilewright::schedule
