#include <gtest/gtest.h>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::ValueId;

constexpr std::string_view kPass = "eliminate_dead";

TEST(EliminateDead, RemovesWholeChainsNobodyReads) {
  GraphBuilder b;
  const ValueId x = b.input("x", {2});
  const ValueId dead = b.node("Relu", {x}, "d1");
  b.node("Add", {dead, b.constant("c", floats({2}, {1, 2}))}, "d2");
  b.constant("unused", floats({1}, {1}));
  b.output(b.node("Neg", {x}, "y"));
  // two nodes, and the constants "c" and "unused"
  EXPECT_EQ(expect_same_function(b, kPass, {varied({2})}), 4);
  EXPECT_EQ(b.graph.order().size(), 1u);
  for (const char* name : {"d1", "d2", "c", "unused"}) EXPECT_FALSE(b.graph.find_value(name)) << name;
}

TEST(EliminateDead, KeepsInputsOutputsAndSidesThatAreRead) {
  GraphBuilder b;
  const ValueId x = b.input("x", {4});
  b.input("unread", {1});
  const auto parts = b.nodes("Split", {x}, {"left", "right"});
  b.output(parts[1]);
  EXPECT_EQ(expect_same_function(b, kPass, {varied({4}), varied({1})}), 0);
  EXPECT_EQ(b.graph.inputs().size(), 2u);
}

TEST(EliminateDead, KeepsWhatASubgraphReads) {
  GraphBuilder b;
  const ValueId inner = b.node("Relu", {b.input("x", {2})}, "inner"), c = b.constant("c", floats({1}, {1}));
  graph::Node loop;
  loop.op_type = "Loop";
  loop.outputs = {b.graph.add_value("y", DType::f32)};
  loop.captured = {inner, c};
  b.graph.add_node(loop);
  b.output(*b.graph.find_value("y"));
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 0);
  EXPECT_TRUE(graph::verify(b.graph));
}

}  // namespace
}  // namespace ctk::test
