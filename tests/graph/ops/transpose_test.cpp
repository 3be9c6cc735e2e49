#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Transpose, ReversesDimensionsByDefault) {
  const auto result = run_op("Transpose", {counting({2, 3})});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(Transpose, FollowsThePermutation) {
  // [1,2,2,2] NCHW -> NHWC: element (h, w, c) is 4c + 2h + w
  const auto result = run_op("Transpose", {counting({1, 2, 2, 2})}, {{"perm", Ints{0, 2, 3, 1}}});
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(Transpose, UndoneByTheInversePermutation) {
  const Tensor data = varied({2, 3, 4, 5});
  const auto there = run_op("Transpose", {data}, {{"perm", Ints{2, 0, 3, 1}}});
  ASSERT_TRUE(there);
  const auto back = run_op("Transpose", {(*there)[0]}, {{"perm", Ints{1, 3, 0, 2}}});
  ASSERT_TRUE(back);
  EXPECT_EQ(values_of((*back)[0]), values_of(data));
}

TEST(Transpose, MovesElementsOfAnySize) {
  for (DType dtype : {DType::i8, DType::bf16, DType::u32, DType::i64}) {
    const auto result = run_op("Transpose", {cast(counting({2, 2}), dtype).value()});
    ASSERT_TRUE(result) << name_of(dtype);
    EXPECT_EQ(values_of(to_f32((*result)[0]).value()), (Floats{0, 2, 1, 3})) << name_of(dtype);
  }
}

TEST(Transpose, AcceptsScalarsAndEmptyTensors) {
  EXPECT_TRUE(run_op("Transpose", {Tensor::scalar(1.0f)}));
  EXPECT_TRUE(run_op("Transpose", {counting({0, 3})}));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  for (const Ints& perm : {Ints{0}, Ints{0, 0}, Ints{0, 2}, Ints{-1, 0}, Ints{0, 1, 2}}) {
    EXPECT_FALSE(infer_op("Transpose", {2, 3}, {}, {{"perm", perm}}));
  }
  EXPECT_FALSE(run_op("Transpose", {Tensor::zeros(DType::i4, {2, 2}).value()}));
}

}  // namespace
}  // namespace ctk::test
