// A graph cut anywhere computes what it computed whole.
#include "graph/subgraph.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/small_networks.h"

namespace ctk::test {
namespace {

using graph::ValueId;

TEST(Subgraph, TwoHalvesComputeWhatTheWholeDoes) {
  const graph::Graph whole = residual_network();
  const std::vector<Tensor> inputs{varied({2, 3, 9, 7}, 42)};
  const auto expected = interpret(whole, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  const std::vector<Shape> shapes{{2, 3, 9, 7}};
  const auto infos = graph::infer_shapes(whole, shapes);
  ASSERT_TRUE(infos) << infos.error().message;
  for (std::size_t cut = 0; cut <= whole.order().size(); ++cut) {
    std::map<ValueId, Tensor> live{{whole.inputs()[0], inputs[0]}};
    for (const auto& [first, last] : {std::pair{std::size_t{0}, cut}, std::pair{cut, whole.order().size()}}) {
      const auto part = graph::extract(whole, first, last, *infos);
      ASSERT_TRUE(part) << part.error().message;
      std::vector<Tensor> given;
      for (ValueId id : part->inputs) given.push_back(live.at(id));
      const auto made = interpret(part->graph, given);
      ASSERT_TRUE(made) << made.error().message;
      for (std::size_t i = 0; i < made->outputs.size(); ++i) live[part->outputs[i]] = made->outputs[i];
    }
    EXPECT_EQ(values_of(live.at(whole.outputs()[0])), values_of(expected->outputs[0])) << "cut before node " << cut;
  }
}

TEST(Subgraph, ShapesThatFlowThroughTheGraphBecomeConstants) {
  GraphBuilder b;
  const auto x = b.input("x", {2, 6});
  const auto shape = b.node("Shape", {x}, "shape", {}, "", DType::i64);
  b.output(b.node("Reshape", {b.node("Relu", {x}, "r"), shape}, "y"));
  const std::vector<Shape> shapes{{2, 6}};
  const auto infos = graph::infer_shapes(b.graph, shapes);
  const auto part = graph::extract(b.graph, 2, 3, *infos);
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(part->inputs.size(), 1u);
  EXPECT_EQ(b.graph.value(part->inputs[0]).name, "r");
}

TEST(Subgraph, RefusesARangeOutsideTheOrder) {
  const graph::Graph whole = residual_network();
  EXPECT_FALSE(graph::extract(whole, 3, 2, {}));
  EXPECT_FALSE(graph::extract(whole, 0, whole.order().size() + 1, {}));
}

}  // namespace
}  // namespace ctk::test
