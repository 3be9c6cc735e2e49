#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Shape squeezed(const Shape& from, const std::vector<Tensor>& axes) {
  const auto infos = infer_op("Squeeze", from, axes);
  EXPECT_TRUE(infos);
  return infos ? (*infos)[0].shape : Shape{};
}

TEST(Squeeze, DropsOnlyTheNamedDimensions) {
  EXPECT_EQ(squeezed({1, 1, 4}, {ints({0})}), (Shape{1, 4}));
  EXPECT_EQ(squeezed({1, 4, 1}, {ints({-1})}), (Shape{1, 4}));
}

TEST(Squeeze, DropsEveryUnitDimensionWithoutAxes) {
  EXPECT_EQ(squeezed({1, 1, 4}, {}), (Shape{4}));
}

TEST(Squeeze, KeepsElements) {
  const auto result = run_op("Squeeze", {counting({1, 3}), ints({0})});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2}));
}

TEST(Squeeze, RefusesDimensionsThatAreNotOne) {
  EXPECT_FALSE(infer_op("Squeeze", {1, 4}, {ints({1})}));
  EXPECT_FALSE(infer_op("Squeeze", {1, 4}, {ints({2})}));
  EXPECT_FALSE(infer_op("Squeeze", {1, 4}, {ints({0, -2})}));  // named twice
  EXPECT_FALSE(infer_op("Squeeze", {1, 4}, {floats({1}, {0})}));
}

}  // namespace
}  // namespace ctk::test
