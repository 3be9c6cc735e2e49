#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Split, CutsIntoListedSizes) {
  const auto parts = run_op("Split", {counting({2, 4}), ints({1, 3})}, {{"axis", std::int64_t{1}}}, 1, 2);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(values_of((*parts)[0]), (Floats{0, 4}));
  EXPECT_EQ(values_of((*parts)[1]), (Floats{1, 2, 3, 5, 6, 7}));
}

TEST(Split, LeavesTheRestToTheLastOfEqualParts) {
  // ceil(7 / 3) = 3: 3, 3 and 1
  const auto parts = run_op("Split", {counting({7})}, {{"num_outputs", std::int64_t{3}}}, 1, 3);
  ASSERT_TRUE(parts);
  EXPECT_EQ(values_of((*parts)[0]), (Floats{0, 1, 2}));
  EXPECT_EQ(values_of((*parts)[1]), (Floats{3, 4, 5}));
  EXPECT_EQ(values_of((*parts)[2]), (Floats{6}));
}

TEST(Split, CutsByTheNumberOfOutputsWithoutAnyWord) {
  const auto parts = run_op("Split", {counting({4})}, {}, 1, 2);
  ASSERT_TRUE(parts);
  EXPECT_EQ(values_of((*parts)[1]), (Floats{2, 3}));
}

TEST(Split, AllowsEmptyParts) {
  const auto parts = run_op("Split", {counting({2}), ints({0, 2})}, {}, 1, 2);
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0].shape(), (Shape{0}));
}

TEST(Split, RefusesSizesThatDoNotSum) {
  EXPECT_FALSE(infer_op("Split", {4}, {ints({1, 2})}, {}, 2));
  EXPECT_FALSE(infer_op("Split", {4}, {ints({-1, 5})}, {}, 2));
  EXPECT_FALSE(infer_op("Split", {4}, {ints({INT64_MAX, INT64_MAX})}, {}, 2));
  EXPECT_FALSE(infer_op("Split", {4}, {ints({4})}, {}, 2));
  EXPECT_FALSE(infer_op("Split", {4}, {}, {{"num_outputs", std::int64_t{1} << 60}}, 2));
  EXPECT_FALSE(infer_op("Split", {4}, {}, {{"num_outputs", std::int64_t{-1}}}, 2));
  // parts of ceil(5 / 4) = 2 leave less than nothing for the fourth
  EXPECT_FALSE(infer_op("Split", {5}, {}, {}, 4));
}

}  // namespace
}  // namespace ctk::test
