#include "graph/passes/rewrite.h"
#include "graph/floats.h"

#include <algorithm>
#include <string>

namespace ctk::graph {
namespace {

bool is_used(const Graph& graph, ValueId id) {
  return id.is_valid() && (!graph.value(id).consumers.empty() || graph.is_output(id));
}

// `to` takes the place of `from` as an output of from's producer. The layer keeps the address users know.
void write_instead(Graph& graph, ValueId from, ValueId to) {
  const NodeId producer = graph.value(from).producer;
  const std::string address = graph.address(producer);
  std::replace(graph.node(producer).outputs.begin(), graph.node(producer).outputs.end(), from, to);
  graph.value(from).producer = {};
  graph.value(to).producer = producer;
  if (!graph.value(to).activation_quant) graph.value(to).activation_quant = graph.value(from).activation_quant;
  if (graph.address(producer) == address) return;
  const auto& order = graph.order();
  const bool is_taken =
      std::any_of(order.begin(), order.end(), [&](NodeId id) { return graph.node(id).name == address; });
  if (!is_taken) graph.node(producer).name = address;
}

}  // namespace

bool is_captured(const Graph& graph, ValueId id) {
  const auto& readers = graph.value(id).consumers;
  return std::any_of(readers.begin(), readers.end(), [&](NodeId reader) {
    const auto& captured = graph.node(reader).captured;
    return std::find(captured.begin(), captured.end(), id) != captured.end();
  });
}

std::optional<NodeId> only_reader(const Graph& graph, ValueId id) {
  if (!id.is_valid() || graph.value(id).consumers.size() != 1) return std::nullopt;
  if (graph.is_output(id) || is_captured(graph, id)) return std::nullopt;
  return graph.value(id).consumers.front();
}

bool is_omitted(const Node& node, std::size_t input) {
  return input >= node.inputs.size() || !node.inputs[input].is_valid();
}

const Tensor* constant_of(const Graph& graph, const Node& node, std::size_t input) {
  if (is_omitted(node, input)) return nullptr;
  const Value& value = graph.value(node.inputs[input]);
  const bool is_plain = value.quantized == nullptr && value.constant.has_value() && !is_narrow(value);
  return is_plain ? &*value.constant : nullptr;
}

std::optional<std::vector<std::int64_t>> integers_of(const Graph& graph, const Node& node, std::size_t input) {
  const Tensor* tensor = constant_of(graph, node, input);
  if (tensor == nullptr || (tensor->dtype() != DType::i64 && tensor->dtype() != DType::i32)) return std::nullopt;
  auto list = to_i64(*tensor);
  if (!list) return std::nullopt;
  return std::move(*list);
}

bool can_bypass(const Graph& graph, NodeId id, ValueId from) {
  const Node& node = graph.node(id);
  if (!from.is_valid() || node.outputs.empty() || !node.outputs[0].is_valid()) return false;
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (is_used(graph, node.outputs[i])) return false;
  }
  const ValueId out = node.outputs[0];
  const Value& inner = graph.value(from);
  if (is_captured(graph, out)) return false;
  const bool is_inner_private = inner.producer.is_valid() && !inner.is_constant() && only_reader(graph, from) == id;
  const auto& note = graph.value(out).activation_quant;
  if (note.has_value() && note != inner.activation_quant && (inner.activation_quant || !is_inner_private)) return false;
  if (!graph.is_output(out)) return true;
  // The producer of `from` will write the graph output itself, so `from` must be free to vanish.
  return inner.producer.is_valid() && !inner.is_constant() && !graph.is_output(from) && !is_captured(graph, from);
}

void bypass(Graph& graph, NodeId id, ValueId from) {
  const ValueId out = graph.node(id).outputs[0];
  graph.remove_node(id);
  if (graph.is_output(out)) {
    write_instead(graph, from, out);
    graph.replace_uses(from, out);
  } else {
    if (!graph.value(from).activation_quant) graph.value(from).activation_quant = graph.value(out).activation_quant;
    graph.replace_uses(out, from);
  }
}

std::optional<std::vector<InferredValue>> try_infer(const Graph& graph, std::int64_t other) {
  std::vector<Shape> shapes = default_input_shapes(graph, 2);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto& declared = graph.value(graph.inputs()[i]).shape;
    for (std::size_t d = 0; d < shapes[i].size(); ++d) {
      if ((*declared)[d].size < 0 && shapes[i][d] == 1) shapes[i][d] = other;
    }
  }
  auto inferred = infer_shapes(graph, shapes, true);
  if (!inferred) return std::nullopt;
  return std::move(*inferred);
}

bool has_static_inputs(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId id) {
    const auto& shape = graph.value(id).shape;
    return shape.has_value() && std::all_of(shape->begin(), shape->end(), [](const Dim& dim) { return dim.size >= 0; });
  });
}

}  // namespace ctk::graph
