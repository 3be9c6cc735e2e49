#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

constexpr std::int64_t kMax = INT64_MAX, kMin = INT64_MIN;

Floats slice(const Tensor& data, const Ints& starts, const Ints& ends, const Ints& axes, const Ints& steps) {
  const auto result = run_op("Slice", {data, ints(starts), ints(ends), ints(axes), ints(steps)});
  EXPECT_TRUE(result) << result.error().message;
  return result ? values_of((*result)[0]) : Floats{};
}

TEST(Slice, TakesEveryStepFromStartToBeforeEnd) {
  EXPECT_EQ(slice(counting({8}), {1}, {7}, {0}, {2}), (Floats{1, 3, 5}));
  // columns 1 and 2 of rows 1 and 2 of a 3 by 4 matrix
  EXPECT_EQ(slice(counting({3, 4}), {1, 1}, {3, 3}, {0, 1}, {1, 1}), (Floats{5, 6, 9, 10}));
}

TEST(Slice, CountsNegativeBoundsAndAxesFromTheBack) {
  EXPECT_EQ(slice(counting({6}), {-4}, {-1}, {-1}, {1}), (Floats{2, 3, 4}));
}

TEST(Slice, WalksBackwardsWithNegativeSteps) {
  EXPECT_EQ(slice(counting({5}), {-1}, {kMin}, {0}, {-1}), (Floats{4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(counting({5}), {kMax}, {0}, {0}, {-2}), (Floats{4, 2}));
}

TEST(Slice, ClampsBoundsPastTheEnds) {
  EXPECT_EQ(slice(counting({3}), {-100}, {kMax}, {0}, {1}), (Floats{0, 1, 2}));
  EXPECT_EQ(slice(counting({3}), {kMin}, {kMax}, {0}, {kMax}), (Floats{0}));
  EXPECT_EQ(slice(counting({3}), {kMax}, {kMin}, {0}, {kMin}), (Floats{2}));
  EXPECT_EQ(slice(counting({3}), {2}, {1}, {0}, {1}), (Floats{}));
}

TEST(Slice, AppliesToLeadingAxesWithoutAxes) {
  const auto result = run_op("Slice", {counting({3, 2}), ints({2}), ints({3})});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{4, 5}));
}

TEST(Slice, ReadsBoundsOf32Bits) {
  const std::int32_t start[] = {1}, end[] = {3};
  const auto result =
      run_op("Slice", {counting({4}), Tensor::of<std::int32_t>({1}, start), Tensor::of<std::int32_t>({1}, end)});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{1, 2}));
}

TEST(Slice, MovesElementsOfAnySize) {
  for (DType dtype : {DType::u8, DType::f16, DType::i32, DType::f64, DType::boolean}) {
    const Tensor data = cast(floats({2, 2}, {1, 0, 1, 1}), dtype).value();
    const auto result = run_op("Slice", {data, ints({-1}), ints({kMin}), ints({1}), ints({-1})});
    ASSERT_TRUE(result) << name_of(dtype);
    EXPECT_EQ(values_of(to_f32((*result)[0]).value()), (Floats{0, 1, 1, 1})) << name_of(dtype);
  }
}

TEST(Slice, RefusesWhatItCannotMean) {
  EXPECT_FALSE(infer_op("Slice", {4}, {ints({0}), ints({1}), ints({0}), ints({0})}));  // step 0
  EXPECT_FALSE(infer_op("Slice", {4}, {ints({0}), ints({1}), ints({1})}));             // no such axis
  EXPECT_FALSE(infer_op("Slice", {4}, {ints({0}), ints({1}), ints({kMin})}));          // no such axis
  EXPECT_FALSE(infer_op("Slice", {4}, {ints({0, 0}), ints({1, 1}), ints({0, 0})}));    // axis twice
  EXPECT_FALSE(infer_op("Slice", {4}, {ints({0, 0}), ints({1}), ints({0})}));          // lengths differ
  EXPECT_FALSE(infer_op("Slice", {}, {ints({0}), ints({1})}));                         // nothing to cut
}

TEST(Slice, SaysThatUnknownBoundsMakeTheShapeDependOnData) {
  const auto result = run_op("Slice", {counting({4}), ints({0}), ints({1})}, {}, 3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::input);
  EXPECT_NE(result.error().message.find("shape depends on data"), std::string::npos);
}

}  // namespace
}  // namespace ctk::test
