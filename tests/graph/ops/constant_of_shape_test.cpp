#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(ConstantOfShape, RepeatsItsValue) {
  const auto zeros = run_op("ConstantOfShape", {ints({2, 2})}, {}, 0);
  ASSERT_TRUE(zeros);
  EXPECT_EQ(values_of((*zeros)[0]), (Floats{0, 0, 0, 0}));
  const auto sevens = run_op("ConstantOfShape", {ints({3})}, {{"value", ints({7})}}, 0);
  ASSERT_TRUE(sevens);
  EXPECT_EQ(to_i64((*sevens)[0]).value(), (Ints{7, 7, 7}));
}

TEST(ConstantOfShape, GivesAScalarForAnEmptyShape) {
  const auto result = run_op("ConstantOfShape", {ints({})}, {}, 0);
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{}));
}

TEST(ConstantOfShape, RefusesHostileShapesAndValues) {
  EXPECT_FALSE(run_op("ConstantOfShape", {ints({-1})}, {}, 0));
  EXPECT_FALSE(run_op("ConstantOfShape", {ints({INT64_MAX, INT64_MAX})}, {}, 0));
  EXPECT_FALSE(run_op("ConstantOfShape", {ints({2})}, {{"value", floats({2}, {1, 2})}}, 0));
  EXPECT_FALSE(run_op("ConstantOfShape", {ints({2})}, {}, 1));  // shape depends on data
}

}  // namespace
}  // namespace ctk::test
