// tests/schedule/mask_rule_test.cpp: a row's and a tile's key intervals against single keys.
#include "schedule/mask_rule.h"

#include <gtest/gtest.h>

#include "brute_force.h"

namespace tilewright::schedule {
namespace {

constexpr Index kFarthest = 9223372036854775807;

TEST(MaskRule, visible_and_row_agree_with_the_definition_for_every_key) {
  for_each_small_mask(7, [](const SmallMask& mask) {
    const MaskRule rule = mask.rule();
    for (Index i = 0; i < mask.q_len; ++i) {
      const KeyRange row = rule.row(i);
      ASSERT_LE(0, row.begin);
      ASSERT_LE(row.begin, row.end);
      ASSERT_LE(row.end, mask.kv_len);
      for (Index j = -2; j < mask.kv_len + 2; ++j) {
        const bool sees = mask.sees(i, j);
        ASSERT_EQ(rule.visible(i, j), sees) << mask << " query " << i << " key " << j;
        ASSERT_EQ(j >= row.begin && j < row.end, sees) << mask << " query " << i << " key " << j;
      }
    }
  });
}

// visited holds every key that some query sees, unmasked only keys that all see; both as tight as
// an interval can be.
TEST(MaskRule, visited_and_unmasked_agree_for_every_range_of_queries) {
  for_each_small_mask(6, [](const SmallMask& mask) {
    const MaskRule rule = mask.rule();
    for (Index begin = 0; begin < mask.q_len; ++begin) {
      for (Index end = begin + 1; end <= mask.q_len; ++end) {
        Index first_some = -1, end_some = -1;
        Index all = 0;
        for (Index j = 0; j < mask.kv_len; ++j) {
          Index seen = 0;
          for (Index i = begin; i < end; ++i) seen += mask.sees(i, j) ? 1 : 0;
          if (seen > 0) {
            if (first_some < 0) first_some = j;
            end_some = j + 1;
          }
          const KeyRange unmasked = rule.unmasked(begin, end);
          const bool inside = j >= unmasked.begin && j < unmasked.end;
          ASSERT_EQ(inside, seen == end - begin)
              << mask << " queries " << begin << ".." << end << " key " << j;
          all += inside ? 1 : 0;
        }
        const KeyRange visited = rule.visited(begin, end);
        if (first_some < 0) {
          ASSERT_TRUE(visited.empty()) << mask << " queries " << begin << ".." << end;
        } else {
          ASSERT_EQ(visited.begin, first_some) << mask << " queries " << begin << ".." << end;
          ASSERT_EQ(visited.end, end_some) << mask << " queries " << begin << ".." << end;
        }
        ASSERT_EQ(rule.unmasked(begin, end).size(), all);
      }
    }
  });
}

TEST(MaskRule, the_widest_windows_do_not_overflow) {
  constexpr Index kLong = Index{1} << 40;
  const MaskRule rule = make_mask_rule(kLong, kLong, false, true, kFarthest, kFarthest);
  EXPECT_EQ(rule.row(0).size(), kLong);
  EXPECT_EQ(rule.row(kLong - 1).size(), kLong);
  const MaskRule causal = make_mask_rule(1, kLong, true, true, kFarthest, -1);
  EXPECT_EQ(causal.row(0).size(), kLong);
}

static_assert(make_mask_rule(4, 4, true, true, -1, -1).row(1).size() == 2, "usable in constants");

}  // namespace
}  // namespace tilewright::schedule
