#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

const Attrs kAxis0 = {{"axis", std::int64_t{0}}};
const Attrs kLast = {{"axis", std::int64_t{-1}}};

TEST(Concat, JoinsAlongTheAxis) {
  const Tensor a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2, 1}, {5, 6});
  const auto wide = run_op("Concat", {a, b}, kLast, 2);
  ASSERT_TRUE(wide);
  EXPECT_EQ((*wide)[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of((*wide)[0]), (Floats{1, 2, 5, 3, 4, 6}));
  const auto tall = run_op("Concat", {a, floats({1, 2}, {7, 8})}, kAxis0, 2);
  ASSERT_TRUE(tall);
  EXPECT_EQ(values_of((*tall)[0]), (Floats{1, 2, 3, 4, 7, 8}));
}

TEST(Concat, HandsASingleInputThrough) {
  const auto result = run_op("Concat", {floats({1, 2}, {1, 2})}, kAxis0);
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{1, 2}));
}

TEST(Concat, SkipsEmptyParts) {
  const auto result = run_op("Concat", {floats({0, 2}, {}), floats({1, 2}, {1, 2})}, kAxis0, 2);
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{1, 2}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(run_op("Concat", {counting({2, 2}), counting({3, 1})}, kLast, 2));
  EXPECT_FALSE(run_op("Concat", {counting({2}), counting({2, 1})}, kAxis0, 2));
  EXPECT_FALSE(run_op("Concat", {counting({2}), ints({1, 2})}, kAxis0, 2));  // types differ
  EXPECT_FALSE(run_op("Concat", {counting({2})}, {}, 1));                    // no axis
  EXPECT_FALSE(run_op("Concat", {counting({2}), Tensor{}}, kAxis0, 2));      // an input omitted
  EXPECT_FALSE(run_op("Concat", {Tensor::scalar(1.0f)}, kAxis0));            // no dimension to join along
}

TEST(Concat, FollowsKnownShapeParts) {
  const auto infos = run_op("Concat", {ints({2}), ints({-1, 3})}, kAxis0, 0);
  ASSERT_TRUE(infos);
  EXPECT_EQ(to_i64((*infos)[0]).value(), (Ints{2, -1, 3}));
}

}  // namespace
}  // namespace ctk::test
