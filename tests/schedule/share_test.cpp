// tests/schedule/share_test.cpp: shares against dealing things out one by one.
#include "schedule/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tilewright::schedule {
namespace {

TEST(Share, HoldsEveryThingOnceInSharesOfLikeSize) {
  for (int things = 1; things <= 40; ++things) {
    for (int shares = 1; shares <= things; ++shares) {
      std::vector<int> dealt(static_cast<std::size_t>(shares));
      for (int thing = 0; thing < things; ++thing)
        ++dealt[static_cast<std::size_t>(thing % shares)];
      int begin = 0;
      for (const int size : dealt) {
        for (int thing = begin; thing < begin + size; ++thing) {
          const Share share = share_of(thing, things, shares);
          ASSERT_EQ(share.first, begin) << thing << " of " << things << " in " << shares;
          ASSERT_EQ(share.size, size) << thing << " of " << things << " in " << shares;
        }
        begin += size;
      }
    }
  }
}

TEST(Share, HoldsAsManyAsAnIntCounts) {
  constexpr int kMost = 2147483647;
  EXPECT_EQ(share_of(kMost - 1, kMost, 1).size, kMost);
  EXPECT_EQ(share_of(kMost - 1, kMost, 2).first, 1073741824);
  EXPECT_EQ(share_of(kMost - 1, kMost, kMost).first, kMost - 1);
}

}  // namespace
}  // namespace tilewright::schedule
