#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Shape unsqueezed(const Shape& from, const Ints& axes) {
  const auto infos = infer_op("Unsqueeze", from, {ints(axes)});
  EXPECT_TRUE(infos);
  return infos ? (*infos)[0].shape : Shape{};
}

TEST(Unsqueeze, InsertsDimensionsAtPositionsOfTheResult) {
  EXPECT_EQ(unsqueezed({3, 4}, {0}), (Shape{1, 3, 4}));
  EXPECT_EQ(unsqueezed({3, 4}, {-1}), (Shape{3, 4, 1}));
  EXPECT_EQ(unsqueezed({3, 4}, {3, 0}), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(unsqueezed({}, {0}), (Shape{1}));
}

TEST(Unsqueeze, KeepsElements) {
  const auto result = run_op("Unsqueeze", {counting({3}), ints({1})});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2}));
}

TEST(Unsqueeze, RefusesAxesOutsideOrTwice) {
  EXPECT_FALSE(infer_op("Unsqueeze", {3}, {ints({2})}));
  EXPECT_FALSE(infer_op("Unsqueeze", {3}, {ints({-3})}));
  EXPECT_FALSE(infer_op("Unsqueeze", {3}, {ints({0, -3})}));
  EXPECT_FALSE(infer_op("Unsqueeze", {3}, {}));
  EXPECT_FALSE(infer_op("Unsqueeze", {3}, {ints(Ints(40, 0))}));
}

}  // namespace
}  // namespace ctk::test
