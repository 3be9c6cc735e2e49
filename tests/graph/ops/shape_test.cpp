#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Ints shape_of(const Shape& shape, const Attrs& attributes = {}) {
  const auto infos = infer_op("Shape", shape, {}, attributes);
  EXPECT_TRUE(infos);
  return infos ? to_i64((*infos)[0].constant.value()).value() : Ints{};
}

TEST(ShapeOp, IsKnownAtInference) {
  EXPECT_EQ(shape_of({2, 3, 4}), (Ints{2, 3, 4}));
}

TEST(ShapeOp, CutsByStartAndEndClampedToTheRank) {
  EXPECT_EQ(shape_of({2, 3, 4}, {{"start", std::int64_t{1}}}), (Ints{3, 4}));
  EXPECT_EQ(shape_of({2, 3, 4}, {{"end", std::int64_t{-1}}}), (Ints{2, 3}));
  EXPECT_EQ(shape_of({2, 3, 4}, {{"start", INT64_MIN}, {"end", INT64_MAX}}), (Ints{2, 3, 4}));
  EXPECT_EQ(shape_of({2, 3, 4}, {{"start", std::int64_t{2}}, {"end", std::int64_t{1}}}), (Ints{}));
}

TEST(ShapeOp, EvaluatesToTheSame) {
  const auto result = run_op("Shape", {counting({5, 1})});
  ASSERT_TRUE(result);
  EXPECT_EQ(to_i64((*result)[0]).value(), (Ints{5, 1}));
}

}  // namespace
}  // namespace ctk::test
