#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

const Attrs kAllowZero = {{"allowzero", std::int64_t{1}}};

Shape shape_after(const Shape& from, const Ints& wish, const Attrs& attributes = {}) {
  const auto infos = infer_op("Reshape", from, {ints(wish)}, attributes);
  EXPECT_TRUE(infos) << infos.error().message;
  return infos ? (*infos)[0].shape : Shape{};
}

TEST(Reshape, KeepsElementsInOrder) {
  const auto result = run_op("Reshape", {counting({2, 3}), ints({3, 2})});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2, 3, 4, 5}));
}

TEST(Reshape, CopiesAtZeroAndFillsAtMinusOne) {
  EXPECT_EQ(shape_after({2, 3, 4}, {0, -1}), (Shape{2, 12}));
  EXPECT_EQ(shape_after({2, 3, 4}, {-1, 0, 2}), (Shape{4, 3, 2}));
  EXPECT_EQ(shape_after({1}, {}), (Shape{}));
}

TEST(Reshape, TakesZeroAtItsWordWithAllowzero) {
  EXPECT_EQ(shape_after({0, 3}, {3, 0}, kAllowZero), (Shape{3, 0}));
  EXPECT_FALSE(infer_op("Reshape", {0, 3}, {ints({0, -1})}, kAllowZero));
}

TEST(Reshape, RefusesShapesOfAnotherSize) {
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({4, 2})}));
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({4, -1})}));
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({-1, -1})}));
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({-2, -3})}));
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({2, 3, 0})}));  // no third dimension to copy
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({INT64_MAX, 2})}));
  EXPECT_FALSE(infer_op("Reshape", {2, 3}, {ints({INT64_MAX, INT64_MAX, -1})}));
  EXPECT_FALSE(infer_op("Reshape", {1}, {ints({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})}));  // rank
}

TEST(Reshape, SaysThatAnUnknownShapeDependsOnData) {
  const auto result = run_op("Reshape", {counting({4}), ints({2, 2})}, {}, 2);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("shape depends on data"), std::string::npos);
}

}  // namespace
}  // namespace ctk::test
