// Notes on each Relu or Clip which node computes it in its own last step: the Conv, ConvTranspose, Gemm, MatMul or Add
// whose output it alone reads. The nodes stay; an executor that fuses reads the note, any other ignores it.
#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

bool is_host(Op op) {
  return op == Op::Conv || op == Op::ConvTranspose || op == Op::Gemm || op == Op::MatMul || op == Op::Add;
}

bool has_known_bounds(const Graph& graph, const Node& node) {
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    if (!is_omitted(node, i) && constant_of(graph, node, i) == nullptr) return false;
  }
  return true;
}

// Invalid when the activation stands for itself. A value stored as codes is rounded before the activation sees it, so
// it keeps the two apart.
NodeId host_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (is_omitted(node, 0) || !has_known_bounds(graph, node)) return {};
  const Value& from = graph.value(node.inputs[0]);
  if (!from.producer.is_valid() || from.activation_quant || only_reader(graph, node.inputs[0]) != id) return {};
  return is_host(graph.node(from.producer).op) ? from.producer : NodeId{};
}

}  // namespace

Result<int> absorb_activations(Graph& graph) {
  int changes = 0;
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (node.op != Op::Relu && node.op != Op::Clip) continue;
    const NodeId host = host_of(graph, id);
    if (node.absorbed_by == host) continue;
    node.absorbed_by = host;
    ++changes;
  }
  return changes;
}

}  // namespace ctk::graph
