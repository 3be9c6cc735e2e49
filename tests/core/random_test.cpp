#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace ctk {
namespace {

// Worked out with an independent program in Python integers, from the published definitions.
TEST(Random, GivesTheKnownFirstNumbers) {
  Random zero(0), one(1), split(1, "split");
  EXPECT_EQ(zero.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(zero.next(), 0xbf6e1f784956452au);
  EXPECT_EQ(zero.next(), 0x1a5f849d4933e6e0u);
  EXPECT_EQ(one.next(), 0xb3f2af6d0fc710c5u);
  EXPECT_EQ(one.next(), 0x853b559647364ceau);
  EXPECT_EQ(split.next(), 0x4d33bffb40704e39u);
  EXPECT_EQ(split.next(), 0xc78a541718cd34c3u);
}

TEST(Random, UniformTakesTheUpperBits) {
  Random random(0);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.6012629994179048);
  EXPECT_DOUBLE_EQ(random.uniform(), 0.7477740925472398);
}

TEST(Random, PurposesAndSeedsHaveTheirOwnStreams) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed : {0, 1, 2}) {
    for (const char* purpose : {"", "a", "b", "ab", "ba"})
      EXPECT_TRUE(firsts.insert(Random(seed, purpose).next()).second);
  }
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Random random(7);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.below(6));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(random.below(1), 0u);
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;  // almost half of all numbers are drawn again
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(large), large);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(3);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  // Five standard errors: 5 / sqrt(n) and 5 * sqrt(2 / n).
  EXPECT_NEAR(sum / kCount, 0.0, 0.016);
  EXPECT_NEAR(squares / kCount, 1.0, 0.023);
}

TEST(Random, PermutationHoldsEachIndexOnceAndRepeats) {
  auto order = Random(5).permutation(100);
  EXPECT_EQ(order, Random(5).permutation(100));
  EXPECT_NE(order, Random(6).permutation(100));
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(Random(5).permutation(0).empty());
}

}  // namespace
}  // namespace ctk
