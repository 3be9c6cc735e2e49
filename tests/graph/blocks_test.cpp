#include "graph/blocks.h"

#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

std::vector<std::string> names_of(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Cut& cut : graph::cuts_of(graph)) {
    names.push_back(graph.value(cut.value).name + "@" + std::to_string(cut.place));
  }
  return names;
}

TEST(Blocks, AResidualSumIsCutBehindNotInside) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 4});
  const auto h = b.node("MatMul", {x, b.constant("w0", varied({4, 4}, 1))}, "h");
  const auto up = b.node("MatMul", {h, b.constant("w1", varied({4, 8}, 2))}, "up");
  const auto down = b.node("MatMul", {b.node("Relu", {up}, "r"), b.constant("w2", varied({8, 4}, 3))}, "down");
  b.output(b.node("Add", {h, down}, "y"));
  // h alone crosses behind node 1; behind nodes 2, 3 and 4 the branch goes beside it; y is the output.
  EXPECT_EQ(names_of(b.graph), (std::vector<std::string>{"h@1", "y@5"}));
}

TEST(Blocks, WhatNoLayerHasAPartInGoesAlong) {
  GraphBuilder b;
  const auto x = b.input("x", {-1, 4});
  const auto mask = b.node("Sigmoid", {x}, "mask");
  const auto a = b.node("MatMul", {x, b.constant("w0", varied({4, 4}, 1))}, "a");
  const auto later = b.node("Tanh", {x}, "later");
  const auto c = b.node("Mul", {a, mask}, "c");
  b.output(b.node("Mul", {c, later}, "y"));
  // a crosses places 2 and 3, between which Tanh of the input stands: the later one counts.
  EXPECT_EQ(names_of(b.graph), (std::vector<std::string>{"a@3", "c@4", "y@5"}));
}

}  // namespace
}  // namespace ctk::test
