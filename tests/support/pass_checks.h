// What every rewrite must keep: the names, order and types of inputs and outputs, and the float results.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "graph/passes/passes.h"
#include "tests/support/graph_builder.h"

namespace ctk::test {

inline Result<int> run_pass(graph::Graph& graph, std::string_view name) {
  for (const graph::Pass& pass : graph::passes()) {
    if (pass.name == name) return pass.run(graph);
  }
  return internal_error("no pass is called " + std::string(name));
}

// Runs the pass and returns its number of changes. `tolerance` is relative to the largest result (at least 1): 0 asks
// for the same bits.
inline int expect_same_function(GraphBuilder& builder, std::string_view pass, const std::vector<Tensor>& inputs,
                                double tolerance = 0.0) {
  graph::Graph& graph = builder.graph;
  const graph::Graph original = graph.clone();
  const auto before = interpret(original, inputs);
  EXPECT_TRUE(before) << before.error().message;
  const auto changes = run_pass(graph, pass);
  EXPECT_TRUE(changes) << changes.error().message;
  const auto status = graph::verify(graph);
  EXPECT_TRUE(status) << status.error().message;
  const auto after = interpret(graph, inputs);
  EXPECT_TRUE(after) << after.error().message;
  if (!before || !changes || !after) return -1;

  EXPECT_EQ(graph.inputs().size(), original.inputs().size());
  for (std::size_t i = 0; i < original.inputs().size(); ++i) {
    EXPECT_EQ(graph.value(graph.inputs()[i]).name, original.value(original.inputs()[i]).name);
  }
  EXPECT_EQ(graph.outputs().size(), original.outputs().size());
  for (std::size_t i = 0; i < original.outputs().size(); ++i) {
    EXPECT_EQ(graph.value(graph.outputs()[i]).name, original.value(original.outputs()[i]).name);
    const Tensor &a = before->outputs[i], &b = after->outputs[i];
    EXPECT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(a.shape(), b.shape());
    const Tensor expected = to_f32(a).value(), found = to_f32(b).value();
    double largest = 1.0;
    for (float value : expected.values<float>()) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (std::size_t k = 0; k < expected.size() && k < found.size(); ++k) {
      EXPECT_NEAR(found.values<float>()[k], expected.values<float>()[k], tolerance * largest) << "element " << k;
    }
  }
  return *changes;
}

}  // namespace ctk::test
