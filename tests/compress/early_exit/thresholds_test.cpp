#include "compress/early_exit/thresholds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ctk::test {
namespace {

using exits::choose_thresholds;
using exits::kNobody;
using exits::leave;
using exits::Leaving;
using exits::Outcomes;

using Sizes = std::vector<std::size_t>;

// Five samples, one exit at a quarter of the cost. The head is sure and right of the first two, sure and wrong of the
// third, unsure of the rest; the end is right but for the last.
const Outcomes kOne{{{0.9f, 0.8f, 0.7f, 0.5f, 0.4f}},
                    {{true, true, false, true, false}, {true, true, true, true, false}}};
const std::vector<double> kCost{1, 4};

TEST(Thresholds, NobodyIsLostWhereNobodyMayBe) {
  // All of the four that are right must stay so: the third must not leave; 0.75 lies between 0.8 and 0.7.
  const Leaving found = choose_thresholds(kOne, kCost, {4});
  EXPECT_FLOAT_EQ(found.thresholds[0], 0.75f);
  EXPECT_EQ(found.samples, (Sizes{2, 3}));
  EXPECT_EQ(found.right, 4u);
  EXPECT_DOUBLE_EQ(found.mean_cost, (2 * 1 + 3 * 4) / 5.0);
}

TEST(Thresholds, AllLeaveWhereOneMayBeLost) {
  // Three right suffice: right at the exit are samples 1, 2 and 4, and the last is wrong either way.
  const Leaving found = choose_thresholds(kOne, kCost, {3});
  EXPECT_EQ(found.samples, (Sizes{5, 0}));
  EXPECT_EQ(found.right, 3u);
  EXPECT_LT(found.thresholds[0], 0.4f);
  EXPECT_DOUBLE_EQ(found.mean_cost, 1);
}

TEST(Thresholds, EquallySureSamplesLeaveTogether) {
  // Both say 0.9; one of them is wrong at the exit, so neither may leave.
  const Outcomes both{{{0.9f, 0.9f, 0.5f}}, {{true, false, false}, {true, true, true}}};
  const Leaving found = choose_thresholds(both, kCost, {3});
  EXPECT_EQ(found.thresholds[0], kNobody);
  EXPECT_EQ(found.samples, (Sizes{0, 3}));
}

TEST(Thresholds, ASampleThatTheHeadAloneGetsRightPaysForAnother) {
  // The end is wrong of the first sample, the head of the second: two right of three either way.
  const Outcomes trade{{{0.9f, 0.8f, 0.1f}}, {{true, false, false}, {false, true, true}}};
  const Leaving found = choose_thresholds(trade, kCost, {2});
  EXPECT_EQ(found.samples, (Sizes{2, 1}));
  EXPECT_EQ(found.right, 2u);
}

TEST(Thresholds, AnExitWhoseSamplesTheEarlierOneTakesIsLeftUnused) {
  // The first exit is right of all, at the least cost.
  const Outcomes two{{{0.6f, 0.5f}, {0.9f, 0.9f}}, {{true, true}, {true, true}, {true, true}}};
  const Leaving found = choose_thresholds(two, {1, 2, 4}, {2});
  EXPECT_EQ(found.samples, (Sizes{2, 0, 0}));
}

// One sample may be lost. The first exit could spend it on sample 1 alone and save 3 of 4; the second, surest of
// samples 2 to 5 where it is wrong of one, saves 2 on each of four.
TEST(Thresholds, NoExitUsesUpWhatAnotherMakesMoreOf) {
  const Outcomes table{
      {{0.9f, 0.1f, 0.1f, 0.1f, 0.1f}, {0.1f, 0.9f, 0.8f, 0.8f, 0.7f}},
      {{false, false, false, false, false}, {false, true, false, true, true}, {true, true, true, true, true}}};
  const Leaving found = choose_thresholds(table, {1, 2, 4}, {4});
  EXPECT_EQ(found.samples, (Sizes{0, 4, 1}));
  EXPECT_EQ(found.right, 4u);
  EXPECT_DOUBLE_EQ(found.mean_cost, (4 * 2 + 4) / 5.0);
}

// Of four that are right three must stay. All leaving changes one of them: one lost, the root of 1 to spare asks for
// two. The surest two leaving changes nothing.
TEST(Thresholds, AStandardErrorIsLeftToSpare) {
  const Leaving found = choose_thresholds(kOne, kCost, {3, 1});
  EXPECT_EQ(found.samples, (Sizes{2, 3}));
  EXPECT_EQ(found.changed, 0u);
  EXPECT_EQ(choose_thresholds(kOne, kCost, {2, 1}).samples, (Sizes{5, 0}));  // 3 >= 2 + 1
}

TEST(Thresholds, NumbersThatAreNoneLeaveNowhereEarly) {
  const Outcomes bad{{{NAN, 0.9f}}, {{false, true}, {true, true}}};
  EXPECT_EQ(leave(bad, {0.0f}, kCost).samples, (Sizes{1, 1}));
}

// Of every table: the limit is kept, and no exit alone could take a lower threshold at less cost within it.
TEST(Thresholds, NoExitCouldTakeMoreGivenTheOthers) {
  const unsigned seed = 7;
  std::uint32_t state = seed;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / (1 << 24);
  };
  for (int trial = 0; trial < 20; ++trial) {
    Outcomes table{std::vector<std::vector<float>>(3), std::vector<std::vector<bool>>(4)};
    std::size_t right = 0;
    for (int s = 0; s < 60; ++s) {
      const double hard = next();
      for (std::size_t e = 0; e < 4; ++e) {
        const double sure = (1 - hard) * 0.7 + 0.3 * next();
        if (e < 3) table.confidence[e].push_back(static_cast<float>(sure));
        table.is_right[e].push_back(e == 3 ? next() < 0.9 : next() < sure + 0.1 * static_cast<double>(e));
      }
      right += table.is_right[3].back() ? 1 : 0;
    }
    const std::vector<double> cost{1, 2, 3, 4};
    const std::size_t least = right - 2;
    const Leaving found = choose_thresholds(table, cost, {least});
    EXPECT_GE(found.right, least) << "seed " << seed << ", trial " << trial;
    for (std::size_t e = 0; e < 3; ++e) {
      for (const float level : table.confidence[e]) {
        std::vector<float> other = found.thresholds;
        other[e] = level;
        const Leaving changed = leave(table, other, cost);
        EXPECT_FALSE(changed.right >= least && changed.mean_cost < found.mean_cost - 1e-9)
            << "seed " << seed << ", trial " << trial << ", exit " << e << ", level " << level;
      }
    }
  }
}

}  // namespace
}  // namespace ctk::test
