#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Dropout, KeepsEverythingAtInference) {
  const auto result = run_op("Dropout", {counting({3}), Tensor::scalar(0.5f)}, {}, 1, 2);
  ASSERT_TRUE(result);
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2}));
  EXPECT_EQ((*result)[1].dtype(), DType::boolean);
  EXPECT_EQ(to_i64((*result)[1]).value(), (Ints{1, 1, 1}));
}

TEST(Dropout, RefusesTraining) {
  EXPECT_TRUE(run_op("Dropout", {counting({3}), Tensor::scalar(0.5f), Tensor::scalar(false)}));
  EXPECT_FALSE(run_op("Dropout", {counting({3}), Tensor::scalar(0.5f), Tensor::scalar(true)}));
  EXPECT_FALSE(run_op("Dropout", {counting({3}), Tensor::scalar(0.5f), Tensor::scalar(false)}, {}, 3));  // unknown
}

}  // namespace
}  // namespace ctk::test
