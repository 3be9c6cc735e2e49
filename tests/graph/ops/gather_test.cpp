#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Gather, PicksSlicesAlongTheAxis) {
  const auto rows = run_op("Gather", {counting({3, 2}), ints({2, 0})}, {}, 2);
  ASSERT_TRUE(rows);
  EXPECT_EQ(values_of((*rows)[0]), (Floats{4, 5, 0, 1}));
  const auto columns = run_op("Gather", {counting({2, 3}), ints({1})}, {{"axis", std::int64_t{-1}}}, 2);
  ASSERT_TRUE(columns);
  EXPECT_EQ((*columns)[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(values_of((*columns)[0]), (Floats{1, 4}));
}

TEST(Gather, DropsTheAxisForAScalarIndex) {
  const auto result = run_op("Gather", {counting({3}), Tensor::scalar(std::int64_t{1})}, {}, 2);
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{1}));
}

TEST(Gather, CountsNegativeIndicesFromTheBack) {
  const auto result = run_op("Gather", {counting({3}), ints({-1, -3})}, {}, 2);
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{2, 0}));
}

TEST(Gather, RefusesIndicesOutsideAndNamesThem) {
  for (std::int64_t index : {std::int64_t{3}, std::int64_t{-4}, INT64_MAX, INT64_MIN}) {
    const auto result = run_op("Gather", {counting({3}), ints({0, index})}, {}, 2);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(std::to_string(index)), std::string::npos);
  }
  EXPECT_FALSE(run_op("Gather", {counting({0}), ints({0})}, {}, 2));
}

TEST(Gather, RefusesIndicesThatAreNotIntegersAndDataWithoutAxis) {
  EXPECT_FALSE(run_op("Gather", {counting({3}), floats({1}, {0})}, {}, 2));
  EXPECT_FALSE(run_op("Gather", {Tensor::scalar(1.0f), ints({0})}, {}, 2));
}

}  // namespace
}  // namespace ctk::test
