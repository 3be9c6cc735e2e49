#include "compress/prune/least_squares.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace ctk::pruning {
namespace {

TEST(RowSums, FindsTheLineThroughItsPoints) {
  // y = 2 x + 3 at x = 0, 1, 2.
  RowSums sums(1, 1);
  sums.add(std::vector<float>{0, 1, 2}, std::vector<float>{3, 5, 7});
  const auto map = sums.solve(std::vector<float>{0}, 1e-9, true);
  ASSERT_TRUE(map);
  EXPECT_NEAR(map->weights[0], 2.0f, 1e-5f);
  EXPECT_NEAR(map->intercept[0], 3.0f, 1e-5f);
  EXPECT_NEAR(sums.error_of(*map), 0.0, 1e-9);
  // The mean alone, 5, leaves the whole variance: 4 + 0 + 4 over 8.
  EXPECT_NEAR(sums.error_of({{0.0f}, {5.0f}}), 1.0, 1e-9);
}

TEST(RowSums, PullsTowardsThePriorAndNotToZero) {
  // x = -1, 1, y = x, without intercept: sum x x = 2, its mean diagonal too. (2 * 1 + ridge 2 * prior 3) / (2 + 2) = 2.
  RowSums sums(1, 1);
  sums.add(std::vector<float>{-1, 1}, std::vector<float>{-1, 1});
  const auto map = sums.solve(std::vector<float>{3}, 1.0, false);
  ASSERT_TRUE(map);
  EXPECT_NEAR(map->weights[0], 2.0f, 1e-6f);
  EXPECT_EQ(map->intercept[0], 0.0f);
}

TEST(RowSums, InputsThatNeverChangeLeaveTheWeights) {
  RowSums sums(2, 1);
  sums.add(std::vector<float>{0, 0, 0, 0}, std::vector<float>{1, 3});
  const auto map = sums.solve(std::vector<float>{5, -4}, 1e-3, true);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->weights, (std::vector<float>{5, -4}));
  EXPECT_NEAR(map->intercept[0], 2.0f, 1e-6f);
}

TEST(RowSums, NothingWithoutRows) {
  EXPECT_FALSE(RowSums(2, 1).solve(std::vector<float>{1, 2}, 1e-3, true));
}

TEST(RowSums, ColumnsOfAMapGiveWhatItsOutputsWouldHave) {
  Random random(3, "columns");
  const std::size_t rows = 1500, k = 5;  // past one chunk of 1024
  std::vector<float> x(rows * k), part, y;
  for (float& v : x) v = static_cast<float>(random.normal() + 0.5);
  const LinearMap map{{1, -2, 3, 0.5f, 0, 0, 1, 1, -1, 2}, {0.25f, -4}};
  const std::vector<std::size_t> kept{0, 2, 4};
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c : kept) part.push_back(x[r * k + c]);
    for (std::size_t o = 0; o < 2; ++o) {
      float sum = map.intercept[o];
      for (std::size_t c = 0; c < k; ++c) sum += map.weights[o * k + c] * x[r * k + c];
      y.push_back(sum);
    }
  }
  RowSums whole(k, 0), direct(kept.size(), 2);
  whole.add(x, {});
  direct.add(part, y);
  const RowSums derived = whole.of_columns(map, kept);
  const std::vector<float> prior(2 * kept.size(), 0.0f);
  const auto a = derived.solve(prior, 1e-3, true), b = direct.solve(prior, 1e-3, true);
  ASSERT_TRUE(a && b);
  for (std::size_t i = 0; i < a->weights.size(); ++i) EXPECT_NEAR(a->weights[i], b->weights[i], 1e-4f);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(a->intercept[i], b->intercept[i], 1e-3f);
  EXPECT_NEAR(derived.error_of(*a), direct.error_of(*a), 1e-4);
}

}  // namespace
}  // namespace ctk::pruning
