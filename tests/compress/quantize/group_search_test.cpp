#include "compress/quantize/group_search.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ctk::quantization {
namespace {

TEST(GroupSearch, TakesALargerScaleWhereTheLastCodeDoesNotReach) {
  // 3 bits: level 3 is the last. Target 3.6 = 3 + 0.6; H = 2, so g = 1.2. Scale 1.2 reaches it.
  const std::vector<float> h{2.0f};
  const GroupSearch search(h, 1, {3, false, 0, false});
  Lanes level[1], gradient[1];
  GroupLanes rows{level, gradient, {}, {}, {}, {}};
  for (std::size_t r = 0; r < kLanes; ++r) {
    level[0][r] = 3, gradient[0][r] = r == 0 ? 1.2f : 0.0f;
    rows.scale[r] = 1, rows.zero[r] = 0, rows.low[r] = -4, rows.high[r] = 3;
  }
  ASSERT_TRUE(search.search(0, rows));
  EXPECT_FLOAT_EQ(rows.scale[0], 1.2f);
  EXPECT_EQ(level[0][0], 3.0f);
  EXPECT_EQ(rows.scale[1], 1.0f);  // nothing was missing there
  EXPECT_EQ(level[0][1], 3.0f);
}

TEST(GroupSearch, ShiftsTheZeroPointWhereOneEndIsShort) {
  // 2 bits affine, zero 1: levels -1..2. Targets -2 and 1 (levels -1 and 1 now): with zero 2 the levels are -2..1.
  const std::vector<float> h{1, 0, 0, 1};
  const GroupSearch search(h, 2, {2, true, 0, false});
  Lanes level[2], gradient[2];
  GroupLanes rows{level, gradient, {}, {}, {}, {}};
  for (std::size_t r = 0; r < kLanes; ++r) {
    level[0][r] = -1, gradient[0][r] = -1, level[1][r] = 1, gradient[1][r] = 0;
    rows.scale[r] = 1, rows.zero[r] = 1, rows.low[r] = -1, rows.high[r] = 2;
  }
  ASSERT_TRUE(search.search(0, rows));
  EXPECT_EQ(rows.zero[0], 2.0f);
  EXPECT_EQ(rows.low[0], -2.0f);
  EXPECT_EQ(rows.high[0], 1.0f);
  EXPECT_EQ(rows.scale[0], 1.0f);
  EXPECT_EQ(level[0][0], -2.0f);
  EXPECT_EQ(level[1][0], 1.0f);
}

TEST(GroupSearch, LeavesLongGroupsAlone) {
  std::vector<float> h(257 * 257, 0.0f);
  for (std::size_t i = 0; i < 257; ++i) h[i * 258] = 1.0f;
  const GroupSearch search(h, 257, {4, false, 0, true});
  GroupLanes rows{nullptr, nullptr, {}, {}, {}, {}};
  EXPECT_FALSE(search.search(0, rows));
}

}  // namespace
}  // namespace ctk::quantization
