#include "compress/prune/blocks.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

using graph::Graph;

// x [N, 4] -> stem -> for each factor: h = h + factor * (h W) -> head. A factor of 0 changes nothing.
Graph residual(const Floats& factors) {
  GraphBuilder b;
  auto h = b.node("MatMul", {b.input("x", {-1, 4}), b.constant("stem", varied({4, 4}, 1))}, "h");
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const std::string name = std::to_string(i);
    Tensor weight = varied({4, 4}, static_cast<unsigned>(i) + 2);
    for (float& value : weight.mutable_values<float>()) value *= factors[i];
    const auto inner = b.node("MatMul", {b.node("Relu", {h}, "r" + name), b.constant("w" + name, weight)}, "m" + name);
    h = b.node("Add", {h, inner}, "h" + name);
  }
  b.output(b.node("MatMul", {h, b.constant("head", varied({4, 2}, 9))}, "y"));
  return std::move(b.graph);
}

std::vector<std::string> nodes_of(const Graph& graph) {
  std::vector<std::string> names;
  for (graph::NodeId id : graph.order()) names.push_back(graph.address(id));
  return names;
}

TEST(Blocks, AreResidualSumsFromOneToTheNext) {
  const auto blocks = pruning::whole_blocks(residual({1, 1, 1}), {{1, 4}});
  ASSERT_TRUE(blocks) << blocks.error().message;
  std::vector<std::string> names;
  for (const pruning::WholeBlock& block : *blocks) names.push_back(block.name);
  EXPECT_EQ(names, (std::vector<std::string>{"MatMul_m0", "MatMul_m1", "MatMul_m2"}));
}

TEST(Blocks, TheOneThatChangesNothingGoesAndTheFunctionStays) {
  Graph net = residual({1, 0, 1});
  const data::Split split = made_split(net, {4}, 6);
  const auto removed = pruning::remove_least(net, 1, {{1, 4}}, split);
  ASSERT_TRUE(removed) << removed.error().message;
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ((*removed)[0].name, "MatMul_m1");
  EXPECT_NEAR((*removed)[0].influence, 0, 1e-9);
  ASSERT_TRUE(graph::verify(net));
  EXPECT_EQ(nodes_of(net), (std::vector<std::string>{"MatMul_h", "Relu_r0", "MatMul_m0", "Add_h0", "Relu_r2",
                                                     "MatMul_m2", "Add_h2", "MatMul_y"}));
  const Tensor x = varied({3, 4}, 7);
  const auto before = interpret(residual({1, 0, 1}), {x}), after = interpret(net, {x});
  ASSERT_TRUE(before && after);
  EXPECT_EQ(values_of(before->outputs[0]), values_of(after->outputs[0]));
}

TEST(Blocks, MoreThanThereAreIsRefused) {
  Graph net = residual({1, 1});
  const auto removed = pruning::remove_least(net, 3, {{1, 4}}, made_split(net, {4}, 2));
  ASSERT_FALSE(removed);
  EXPECT_NE(removed.error().message.find("expected at most 2"), std::string::npos) << removed.error().message;
}

}  // namespace
}  // namespace ctk::test
