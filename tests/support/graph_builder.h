// Small graphs for tests, written in few lines; and single operators, run without one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/op.h"
#include "tests/support/interpret.h"

namespace ctk::test {

using Attrs = std::vector<std::pair<std::string, graph::Attribute>>;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

inline Tensor floats(Shape shape, const Floats& values) {
  return Tensor::of<float>(std::move(shape), values);
}
// shape [n]
inline Tensor ints(const Ints& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}
// 0, 1, 2, ... as float32
inline Tensor counting(Shape shape) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape)).value();
  float next = 0.0f;
  for (float& value : tensor.mutable_values<float>()) value = next++;
  return tensor;
}
// Varied values in -1..1 that repeat with no small period: the same on every run.
inline Tensor varied(Shape shape, unsigned seed = 1) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape)).value();
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : tensor.mutable_values<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return tensor;
}
inline Floats values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

struct GraphBuilder {
  graph::Graph graph;

  graph::ValueId input(const std::string& name, const Shape& shape, DType dtype = DType::f32) {
    const graph::ValueId id = graph.add_value(name, dtype, declared(shape));
    graph.add_input(id);
    return id;
  }
  graph::ValueId constant(const std::string& name, Tensor tensor) {
    return graph.add_constant(name, std::move(tensor));
  }
  // One node with one output; the node is named after its operator and output: "Conv_y". `domain` other than "" makes
  // it opaque.
  graph::ValueId node(const std::string& op_type, std::vector<graph::ValueId> inputs, const std::string& output,
                      const Attrs& attributes = {}, const std::string& domain = "", DType dtype = DType::f32) {
    return nodes(op_type, std::move(inputs), {output}, attributes, domain, dtype).front();
  }
  std::vector<graph::ValueId> nodes(const std::string& op_type, std::vector<graph::ValueId> inputs,
                                    const std::vector<std::string>& outputs, const Attrs& attributes = {},
                                    const std::string& domain = "", DType dtype = DType::f32) {
    graph::Node node;
    node.name = op_type + "_" + outputs.front();
    node.op_type = op_type;
    node.domain = domain;
    node.inputs = std::move(inputs);
    for (const std::string& output : outputs) node.outputs.push_back(graph.add_value(output, dtype));
    for (const auto& [name, value] : attributes) node.attributes.set(name, value);
    const std::vector<graph::ValueId> ids = node.outputs;
    graph.add_node(std::move(node));
    return ids;
  }
  void output(graph::ValueId id) { graph.add_output(id); }

  // -1 becomes a dimension "N".
  static graph::DeclaredShape declared(const Shape& shape) {
    graph::DeclaredShape dims;
    for (std::int64_t size : shape) dims.push_back(size < 0 ? graph::Dim{-1, "N"} : graph::Dim{size, ""});
    return dims;
  }
};

// The live node that writes value `name`; invalid when there is none.
inline graph::NodeId producer_of(const graph::Graph& graph, const std::string& name) {
  const auto id = graph.find_value(name);
  return id ? graph.value(*id).producer : graph::NodeId{};
}
inline int count_ops(const graph::Graph& graph, graph::Op op) {
  int count = 0;
  for (graph::NodeId id : graph.order()) count += graph.node(id).op == op ? 1 : 0;
  return count;
}

// Runs one operator. An undefined Tensor stands for an omitted input. The first `data_inputs` are unknown to inference,
// the rest are constants.
inline Result<std::vector<Tensor>> run_op(const std::string& op_type, const std::vector<Tensor>& inputs,
                                          const Attrs& attributes = {}, std::size_t data_inputs = 1,
                                          std::size_t outputs = 1) {
  graph::Node node;
  node.op_type = op_type;
  node.op = graph::op_from_type("", op_type);
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph::ValueId{static_cast<std::uint32_t>(i)});
  for (const auto& [name, value] : attributes) node.attributes.set(name, value);
  std::vector<graph::InferInput> infer_inputs;
  std::vector<TensorView> reads;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    graph::InferInput input;
    input.present = inputs[i].is_defined();
    if (input.present) {
      input.info.dtype = inputs[i].dtype();
      input.info.shape = inputs[i].shape();
      if (i >= data_inputs) input.info.constant = inputs[i];
    }
    infer_inputs.push_back(std::move(input));
    reads.push_back(inputs[i].is_defined() ? inputs[i].view() : TensorView{});
  }
  const graph::OpRules& rules = graph::rules_of(node.op);
  CTK_TRY(const auto infos, rules.infer(node, infer_inputs));
  std::vector<Tensor> results;
  std::vector<MutableTensorView> writes;
  for (const graph::ValueInfo& info : infos) {
    CTK_TRY(Tensor tensor, Tensor::zeros(info.dtype, info.shape));
    results.push_back(tensor);
    writes.push_back(tensor.mutable_view());
  }
  CTK_CHECK(rules.evaluate(node, reads, writes));
  return results;
}

// Only the shape rule, for hostile sizes that must be refused (or accepted) without memory.
inline Result<std::vector<graph::ValueInfo>> infer_op(const std::string& op_type, const Shape& data,
                                                      const std::vector<Tensor>& control, const Attrs& attributes = {},
                                                      std::size_t outputs = 1) {
  graph::Node node;
  node.op_type = op_type;
  node.op = graph::op_from_type("", op_type);
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph::ValueId{static_cast<std::uint32_t>(i)});
  for (const auto& [name, value] : attributes) node.attributes.set(name, value);
  std::vector<graph::InferInput> inputs(1);
  inputs[0] = {true, {DType::f32, data, std::nullopt}};
  for (const Tensor& tensor : control) {
    graph::InferInput input;
    input.present = tensor.is_defined();
    if (input.present) input.info = {tensor.dtype(), tensor.shape(), tensor};
    inputs.push_back(std::move(input));
  }
  return graph::rules_of(node.op).infer(node, inputs);
}

}  // namespace ctk::test
