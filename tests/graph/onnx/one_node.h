// Models of one node, for tests of the forms an operator has at an opset.
#pragma once

#include <string>
#include <vector>

#include "tests/graph/onnx/model_maker.h"

namespace ctk::graph::onnx::test {

// One node from x to y at an opset; `inputs` beyond x must be initializers added by the test.
struct OneNode : ModelMaker {
  OneNode(int opset, const std::string& op, const std::vector<std::string>& inputs = {"x"},
          const std::vector<std::int64_t>& x_dims = {1, 1, 4})
      : ModelMaker(opset, 10) {
    input("x", x_dims);
    output("y", {});
    proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    node(op, inputs, {"y"}, "node");
  }
  ::onnx::NodeProto& self() { return *proto.mutable_graph()->mutable_node(0); }
};

inline NodeId only(const Graph& graph) {
  EXPECT_EQ(graph.order().size(), 1u);
  return graph.order()[0];
}

// The node as written for `opset`.
inline ::onnx::NodeProto written_node(const Graph& graph, int opset) {
  const auto model = must_write(graph, opset);
  EXPECT_GE(model.graph().node_size(), 1);
  return model.graph().node_size() == 0 ? ::onnx::NodeProto() : model.graph().node(0);
}

inline std::vector<std::int64_t> ints_of(const ::onnx::NodeProto& node, const std::string& name) {
  for (const auto& entry : node.attribute()) {
    if (entry.name() == name) return {entry.ints().begin(), entry.ints().end()};
  }
  return {-999};
}

}  // namespace ctk::graph::onnx::test
