// A reference interpreter for tests: runs a graph node by node through the operators' own float rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/op.h"
#include "graph/shapes.h"

namespace ctk::test {

struct Interpreted {
  std::vector<Tensor> outputs;           // one per graph output, in order
  std::map<std::string, Tensor> values;  // every value computed, given or constant, by name
};

// inputs: one per graph input, in order. Absorbed activations and residuals are computed by their own nodes, so results
// do not depend on fusion notes. Constants with codes are read as the floats they stand for. Errors: those of inference
// and evaluation, with the node's address in front.
inline Result<Interpreted> interpret(const graph::Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<Shape> shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  CTK_TRY(const auto inferred, graph::infer_shapes(graph, shapes));
  std::vector<Tensor> tensors(graph.value_capacity());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (value.is_removed || !value.is_constant()) continue;
    tensors[i] = value.quantized != nullptr ? dequantize(*value.quantized) : *value.constant;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const graph::ValueId id = graph.inputs()[i];
    if (graph.value(id).dtype != inputs[i].dtype()) {
      return input_error("input \"" + graph.value(id).name + "\": expected " +
                         std::string(name_of(graph.value(id).dtype)) + ", found " +
                         std::string(name_of(inputs[i].dtype())));
    }
    tensors[id.index] = inputs[i];
  }
  for (graph::NodeId id : graph.order()) {
    const graph::Node& node = graph.node(id);
    std::vector<TensorView> reads(node.inputs.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (node.inputs[i].is_valid()) reads[i] = tensors[node.inputs[i].index].view();
    }
    std::vector<MutableTensorView> writes(node.outputs.size());
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!node.outputs[i].is_valid()) continue;
      const graph::ValueInfo& info = inferred[node.outputs[i].index].info;
      CTK_TRY(Tensor result, Tensor::zeros(info.dtype, info.shape));
      tensors[node.outputs[i].index] = result;
      writes[i] = result.mutable_view();
    }
    auto status = graph::rules_of(node.op).evaluate(node, reads, writes);
    if (!status) return std::move(status.error()).with_context(graph.address(id) + " (" + node.op_type + ")");
  }
  Interpreted result;
  for (graph::ValueId output : graph.outputs()) result.outputs.push_back(tensors[output.index]);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_removed && tensors[i].is_defined()) result.values.emplace(value.name, tensors[i]);
  }
  return result;
}

}  // namespace ctk::test
