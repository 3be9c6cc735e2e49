// Computes nodes whose inputs are all known, so that a weight behind Constant, Identity, Cast or Transpose is a weight.
// Kept as they are: QuantizeLinear and DequantizeLinear (codes must stay codes), nodes that write a graph output (an
// executor computes those), results more than 64 MiB larger than what they are made from, and nodes whose rule fails
// (the error belongs to the run, with the node's address).
#include <string>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

constexpr std::size_t kMaxGrowth = std::size_t{64} << 20;  // bytes

bool is_foldable(const Graph& graph, const Node& node) {
  if (node.op == Op::unknown || node.op == Op::QuantizeLinear || node.op == Op::DequantizeLinear) return false;
  for (ValueId output : node.outputs) {
    if (output.is_valid() && graph.is_output(output)) return false;
  }
  return true;
}

// All outputs of the node, or nothing when an input is not known or the result is refused.
std::optional<std::vector<Tensor>> compute(const Graph& graph, const Node& node) {
  std::vector<InferInput> inputs(node.inputs.size());
  std::vector<TensorView> reads(node.inputs.size());
  std::size_t budget = kMaxGrowth;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_omitted(node, i)) continue;
    const Tensor* tensor = constant_of(graph, node, i);
    if (tensor == nullptr) return std::nullopt;
    inputs[i] = {true, {tensor->dtype(), tensor->shape(), *tensor}};
    reads[i] = tensor->view();
    budget += tensor->bytes();
  }
  auto infos = rules_of(node.op).infer(node, inputs);
  if (!infos || infos->size() < node.outputs.size()) return std::nullopt;
  std::vector<Tensor> results;
  std::vector<MutableTensorView> writes;
  for (const ValueInfo& info : *infos) {
    const auto count = element_count(info.shape);
    if (!count || info.dtype == DType::string || byte_size(info.dtype, *count) > budget) return std::nullopt;
    budget -= byte_size(info.dtype, *count);
    auto tensor = Tensor::zeros(info.dtype, info.shape);
    if (!tensor) return std::nullopt;
    writes.push_back(tensor->mutable_view());
    results.push_back(std::move(*tensor));
  }
  if (!rules_of(node.op).evaluate(node, reads, writes)) return std::nullopt;
  return results;
}

void make_constant(Graph& graph, ValueId id, Tensor tensor) {
  Value& value = graph.value(id);
  value.dtype = tensor.dtype();
  value.shape.emplace();
  for (std::int64_t dim : tensor.shape()) value.shape->push_back({dim, ""});
  value.constant = std::move(tensor);
}

void replace_by(Graph& graph, NodeId id, std::vector<Tensor> results) {
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  graph.remove_node(id);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_valid()) make_constant(graph, outputs[i], std::move(results[i]));
  }
}

// Shape, and what is computed from it, follow from inputs of declared size.
int fold_known_shapes(Graph& graph) {
  bool has_shape = false;
  for (NodeId id : graph.order()) has_shape = has_shape || graph.node(id).op == Op::Shape;
  if (!has_shape || !has_static_inputs(graph)) return 0;
  const auto inferred = try_infer(graph);
  if (!inferred) return 0;
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (!is_foldable(graph, node)) continue;
    std::vector<Tensor> results;
    for (ValueId output : node.outputs) {
      if (!output.is_valid()) {
        results.emplace_back();
      } else if (const auto& known = (*inferred)[output.index].info.constant) {
        results.push_back(*known);
      }
    }
    if (results.empty() || results.size() != node.outputs.size()) continue;
    replace_by(graph, id, std::move(results));
    ++changes;
  }
  return changes;
}

}  // namespace

Result<int> fold_constants(Graph& graph) {
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (!is_foldable(graph, graph.node(id))) continue;
    auto results = compute(graph, graph.node(id));
    if (!results) continue;
    replace_by(graph, id, std::move(*results));
    ++changes;
  }
  changes += fold_known_shapes(graph);
  if (changes != 0) graph.remove_dead_values();
  return changes;
}

}  // namespace ctk::graph
