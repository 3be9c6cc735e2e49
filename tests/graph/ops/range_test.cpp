#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

template <class T>
Result<Tensor> range(T start, T limit, T delta) {
  CTK_TRY(auto results, run_op("Range", {Tensor::scalar(start), Tensor::scalar(limit), Tensor::scalar(delta)}, {}, 0));
  return results[0];
}

TEST(Range, CountsUpAndDown) {
  EXPECT_EQ(to_i64(range<std::int64_t>(3, 9, 3).value()).value(), (Ints{3, 6}));
  EXPECT_EQ(to_i64(range<std::int64_t>(10, 4, -2).value()).value(), (Ints{10, 8, 6}));
  EXPECT_EQ(to_i64(range<std::int32_t>(0, 3, 1).value()).value(), (Ints{0, 1, 2}));
  EXPECT_EQ(values_of(range(1.0f, 2.0f, 0.25f).value()), (Floats{1, 1.25f, 1.5f, 1.75f}));
}

TEST(Range, IsEmptyWhenTheStepLeadsAway) {
  EXPECT_EQ(range<std::int64_t>(0, 5, -1).value().size(), 0u);
  EXPECT_EQ(range(0.0f, -1.0f, 1.0f).value().size(), 0u);
}

TEST(Range, SpansTheWholeOfInt64WithoutOverflow) {
  const auto result = range<std::int64_t>(INT64_MIN, INT64_MAX, INT64_MAX);
  ASSERT_TRUE(result);
  EXPECT_EQ(to_i64(*result).value(), (Ints{INT64_MIN, -1, INT64_MAX - 1}));
}

TEST(Range, RefusesEndlessAndHugeOnes) {
  EXPECT_FALSE(range<std::int64_t>(0, 5, 0));
  EXPECT_FALSE(range<std::int64_t>(INT64_MIN, INT64_MAX, 1));
  EXPECT_FALSE(range(0.0f, 1.0f, 0.0f));
  EXPECT_FALSE(range(0.0f, NAN, 1.0f));
  EXPECT_FALSE(range(0.0f, INFINITY, 1.0f));
  EXPECT_FALSE(range(0.0f, 1e30f, 1e-30f));
}

}  // namespace
}  // namespace ctk::test
