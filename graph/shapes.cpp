#include "graph/shapes.h"

#include <set>
#include <string>

#include "core/printable.h"
#include "graph/floats.h"

namespace ctk::graph {

using ctk::to_string;  // of a Shape; graph.h has one of its own for declared shapes

namespace {

// The declared shape when every dimension has a size.
std::optional<Shape> declared_shape(const Value& value) {
  if (!value.shape.has_value()) return std::nullopt;
  Shape shape;
  for (const Dim& dim : *value.shape) {
    if (dim.size < 0) return std::nullopt;
    shape.push_back(dim.size);
  }
  if (!element_count(shape)) return std::nullopt;
  return shape;
}

InferredValue known_constant(const Value& value) {
  // Codes stand for a float weight; its numbers are of no use to a shape rule.
  if (value.quantized != nullptr) return {true, {DType::f32, value.quantized->codes.shape(), std::nullopt}};
  if (is_narrow(value)) return {true, {DType::f32, value.constant->shape(), std::nullopt}};
  return {true, {value.constant->dtype(), value.constant->shape(), value.constant}};
}

// Outputs of an operator without rules: what the model declares of them, if that is complete.
void infer_opaque(const Graph& graph, const Node& node, std::vector<InferredValue>& inferred) {
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) continue;
    const Value& value = graph.value(output);
    if (auto shape = declared_shape(value)) {
      inferred[output.index] = {true, {value.dtype, std::move(*shape), std::nullopt}};
    }
  }
}

Result<std::vector<ValueInfo>> infer_node(const Node& node, std::span<const InferInput> inputs) {
  const OpRules& rules = rules_of(node.op);
  const auto count = static_cast<int>(inputs.size());
  if (rules.infer == nullptr) return input_error("this operator has no shape rule");
  if (count < rules.min_inputs || (rules.max_inputs >= 0 && count > rules.max_inputs)) {
    return input_error("expected " + std::to_string(rules.min_inputs) + " to " +
                       (rules.max_inputs < 0 ? "any number of" : std::to_string(rules.max_inputs)) + " inputs, found " +
                       std::to_string(count));
  }
  CTK_TRY(std::vector<ValueInfo> outputs, rules.infer(node, inputs));
  if (outputs.size() < node.outputs.size()) {
    return input_error("expected at most " + std::to_string(outputs.size()) + " outputs, found " +
                       std::to_string(node.outputs.size()));
  }
  return outputs;
}

std::string place_of(const Graph& graph, NodeId id) {
  return printable(graph.address(id)) + " (" + graph.node(id).op_type + ")";
}

Error unknown_operator(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool is_default = node.domain.empty();
  const auto found = graph.other_opsets.find(node.domain);
  const int version = is_default ? graph.opset : found == graph.other_opsets.end() ? 0 : found->second;
  return input_error(place_of(graph, id) + ": expected an operator we compute, found \"" + node.op_type +
                     "\" of domain \"" + (is_default ? "ai.onnx" : node.domain) + "\" version " +
                     std::to_string(version) + ". Replace it in the model; `compress list ops` names what we compute");
}

}  // namespace

std::vector<Shape> default_input_shapes(const Graph& graph, std::int64_t batch) {
  // A symbol that leads one input is the batch wherever else it stands.
  std::set<std::string> batch_symbols;
  for (ValueId input : graph.inputs()) {
    const auto& declared = graph.value(input).shape;
    if (declared.has_value() && !declared->empty() && !declared->front().symbol.empty()) {
      batch_symbols.insert(declared->front().symbol);
    }
  }
  std::vector<Shape> shapes;
  for (ValueId input : graph.inputs()) {
    Shape& shape = shapes.emplace_back();
    const auto& declared = graph.value(input).shape;
    if (!declared.has_value()) continue;
    for (std::size_t i = 0; i < declared->size(); ++i) {
      const Dim& dim = (*declared)[i];
      const bool is_batch = i == 0 || batch_symbols.contains(dim.symbol);
      shape.push_back(dim.size >= 0 ? dim.size : is_batch ? batch : 1);
    }
  }
  return shapes;
}

Status check_input_shapes(const Graph& graph, std::span<const Shape> shapes) {
  if (shapes.size() != graph.inputs().size()) {
    return input_error("expected shapes of " + std::to_string(graph.inputs().size()) + " inputs, found " +
                       std::to_string(shapes.size()));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Value& value = graph.value(graph.inputs()[i]);
    const Shape& shape = shapes[i];
    auto count = element_count(shape);
    if (!count) return std::move(count.error()).with_context("input \"" + value.name + "\"");
    if (!value.shape.has_value()) continue;
    bool fits = shape.size() == value.shape->size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d) {
      const std::int64_t size = (*value.shape)[d].size;
      fits = size < 0 || size == shape[d];
    }
    if (!fits) {
      return input_error("input \"" + value.name + "\": expected shape " + to_string(*value.shape) + ", found " +
                         to_string(shape) + ". Feed data of the model's own input size");
    }
  }
  return {};
}

Result<std::vector<InferredValue>> infer_shapes(const Graph& graph, std::span<const Shape> input_shapes,
                                                bool allow_unknown) {
  CTK_CHECK(check_input_shapes(graph, input_shapes));
  std::vector<InferredValue> inferred(graph.value_capacity());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
    if (!value.is_removed && value.is_constant()) inferred[i] = known_constant(value);
  }
  for (std::size_t i = 0; i < input_shapes.size(); ++i) {
    const ValueId input = graph.inputs()[i];
    inferred[input.index] = {true, {graph.value(input).dtype, input_shapes[i], std::nullopt}};
  }
  std::vector<InferInput> inputs;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.op == Op::unknown) {
      if (!allow_unknown) return unknown_operator(graph, id);
      infer_opaque(graph, node, inferred);
      continue;
    }
    inputs.assign(node.inputs.size(), {});
    bool is_behind_unknown = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!node.inputs[i].is_valid()) continue;
      const InferredValue& input = inferred[node.inputs[i].index];
      is_behind_unknown = is_behind_unknown || !input.known;
      inputs[i] = {true, input.info};
    }
    if (is_behind_unknown) {
      if (allow_unknown) continue;
      return internal_error(place_of(graph, id) + ": reads a value nothing has produced");
    }
    auto outputs = infer_node(node, inputs);
    if (!outputs) return std::move(outputs.error()).with_context(place_of(graph, id));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].is_valid()) inferred[node.outputs[i].index] = {true, std::move((*outputs)[i])};
    }
  }
  return inferred;
}

}  // namespace ctk::graph
