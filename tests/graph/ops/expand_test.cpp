#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Expand, RepeatsUnitDimensionsBothWays) {
  const auto result = run_op("Expand", {floats({2, 1}, {1, 2}), ints({2, 1, 3})});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  // the wish may be smaller than the input: its 1 takes the input's size
  const auto kept = run_op("Expand", {counting({3}), ints({1})});
  ASSERT_TRUE(kept);
  EXPECT_EQ(values_of((*kept)[0]), (Floats{0, 1, 2}));
}

TEST(Expand, RefusesShapesThatDoNotBroadcast) {
  EXPECT_FALSE(infer_op("Expand", {3}, {ints({2})}));
  EXPECT_FALSE(infer_op("Expand", {1}, {ints({-1})}));
  EXPECT_FALSE(infer_op("Expand", {1}, {ints({INT64_MAX})}));
  EXPECT_FALSE(infer_op("Expand", {1, 1 << 20}, {ints({1 << 30, 1})}));
}

TEST(Expand, AllocatesNothingForHugeShapesAtInference) {
  EXPECT_TRUE(infer_op("Expand", {1}, {ints({std::int64_t{1} << 47})}));
}

}  // namespace
}  // namespace ctk::test
