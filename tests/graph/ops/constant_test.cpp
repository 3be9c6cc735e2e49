#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

Result<Tensor> constant(const Attrs& attributes) {
  CTK_TRY(auto results, run_op("Constant", {}, attributes, 0));
  return results[0];
}

TEST(Constant, HoldsItsAttribute) {
  EXPECT_EQ(values_of(constant({{"value", floats({2}, {1, 2})}}).value()), (Floats{1, 2}));
  EXPECT_EQ(values_of(constant({{"value_float", 3.0f}}).value()), (Floats{3}));
  EXPECT_EQ(constant({{"value_float", 3.0f}}).value().shape(), (Shape{}));
  EXPECT_EQ(values_of(constant({{"value_floats", Floats{1, 2}}}).value()), (Floats{1, 2}));
  EXPECT_EQ(to_i64(constant({{"value_int", std::int64_t{5}}}).value()).value(), (Ints{5}));
  EXPECT_EQ(to_i64(constant({{"value_ints", Ints{5, 6}}}).value()).value(), (Ints{5, 6}));
}

TEST(Constant, RefusesStringsSparseAndNothing) {
  EXPECT_FALSE(constant({}));
  EXPECT_FALSE(constant({{"value_string", std::string("a")}}));
  EXPECT_FALSE(constant({{"sparse_value", graph::OpaqueAttribute{"x"}}}));
  EXPECT_FALSE(constant({{"value", Tensor::zeros(DType::string, {1}).value()}}));
}

}  // namespace
}  // namespace ctk::test
