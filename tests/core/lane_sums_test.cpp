#include "core/lane_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ctk {
namespace {

TEST(LaneSums, ElementsEightApartAreAddedFirst) {
  // One part has the first and the ninth element, which cancel; one after the other the 1 between them would be lost.
  std::vector<float> x(9, 0.0f);
  x[0] = 0x1p60f, x[1] = 1.0f, x[8] = -0x1p60f;
  EXPECT_EQ(lane_sum(x.data(), x.size(), [](double v) { return v; }), 1.0);
  const std::vector<float> ones(9, 1.0f);
  EXPECT_EQ(dot(x.data(), ones.data(), x.size()), 1.0f);
}

TEST(LaneSums, PartsAreAddedFromTheFirstOn) {
  // 2^60 + 1 is 2^60 in double, so that the 1 stays only where the large ones have cancelled before it.
  const std::vector<float> kept{0x1p60f, -0x1p60f, 1.0f}, lost{0x1p60f, 1.0f, -0x1p60f};
  EXPECT_EQ(lane_sum(kept.data(), 3, [](double v) { return v; }), 1.0);
  EXPECT_EQ(lane_sum(lost.data(), 3, [](double v) { return v; }), 0.0);
}

TEST(LaneSums, AnEmptyRowSumsToZero) {
  EXPECT_EQ(sum_of_squares(nullptr, 0), 0.0);
  EXPECT_EQ(dot(nullptr, nullptr, 0), 0.0f);
}

TEST(LaneSums, StatisticsAreThoseOfTheDeviations) {
  // 1 .. 10: mean 5.5, squares of deviations 2 * (0.25 + 2.25 + 6.25 + 12.25 + 20.25) = 82.5, variance 8.25.
  std::vector<float> x;
  for (int i = 1; i <= 10; ++i) x.push_back(static_cast<float>(i));
  const RowStatistics row = row_statistics(x.data(), x.size(), 0.75);
  EXPECT_EQ(row.mean, 5.5);
  EXPECT_EQ(row.inverse, 1.0 / 3.0);
  EXPECT_EQ(sum_of_squares(x.data(), x.size()), 385.0);
}

}  // namespace
}  // namespace ctk
