#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

TEST(Identity, HandsEverythingThrough) {
  const auto result = run_op("Identity", {counting({2, 3})});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of((*result)[0]), (Floats{0, 1, 2, 3, 4, 5}));
}

TEST(Identity, FollowsKnownContents) {
  graph::Node node;
  node.op = graph::Op::Identity;
  const std::vector<graph::InferInput> inputs = {{true, {DType::i64, {2}, ints({4, 5})}}};
  const auto infos = graph::rules_of(node.op).infer(node, inputs);
  ASSERT_TRUE(infos);
  EXPECT_EQ(to_i64((*infos)[0].constant.value()).value(), (Ints{4, 5}));
}

TEST(Identity, RefusesToStandWithoutInput) {
  EXPECT_FALSE(run_op("Identity", {Tensor{}}));
}

}  // namespace
}  // namespace ctk::test
