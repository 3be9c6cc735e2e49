#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Shape flattened(const Shape& from, std::int64_t axis) {
  const auto infos = infer_op("Flatten", from, {}, {{"axis", axis}});
  EXPECT_TRUE(infos);
  return infos ? (*infos)[0].shape : Shape{};
}

TEST(Flatten, SplitsTheDimensionsAtTheAxis) {
  EXPECT_EQ(flattened({2, 3, 4}, 1), (Shape{2, 12}));
  EXPECT_EQ(flattened({2, 3, 4}, 0), (Shape{1, 24}));
  EXPECT_EQ(flattened({2, 3, 4}, 3), (Shape{24, 1}));
  EXPECT_EQ(flattened({2, 3, 4}, -1), (Shape{6, 4}));
  EXPECT_EQ(flattened({}, 0), (Shape{1, 1}));
}

TEST(Flatten, KeepsElementsInOrder) {
  const auto result = run_op("Flatten", {counting({2, 2})});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2, 3}));
}

TEST(Flatten, RefusesAnAxisOutside) {
  EXPECT_FALSE(infer_op("Flatten", {2, 3}, {}, {{"axis", std::int64_t{3}}}));
  EXPECT_FALSE(infer_op("Flatten", {2, 3}, {}, {{"axis", std::int64_t{-3}}}));
}

TEST(Flatten, RefusesDimensionsWhoseProductOverflows) {
  EXPECT_FALSE(infer_op("Flatten", {0, std::int64_t{1} << 62, 4}, {}));
}

}  // namespace
}  // namespace ctk::test
