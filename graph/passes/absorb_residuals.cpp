// Notes on an Add of two equal shapes which Conv adds the other operand in its own last step: the Conv behind one of
// its operands, if the Add alone reads that; of two such, the one that comes last in graph order. The other operand
// must be ready when the Conv runs: where it is computed later (a shortcut written behind the main path), the Conv
// moves to right before the Add, which nobody else notices. An activation the Add has absorbed stays with the Add, so
// the chain Conv, Add, Relu runs as one. Whether codes are stored between the two does not matter: whoever fuses rounds
// where they would be.
#include <algorithm>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

struct Facts {
  std::optional<std::vector<InferredValue>> inferred;
  std::vector<std::size_t> place;  // of each node in the order
};

void note_places(const Graph& graph, Facts& facts) {
  facts.place.resize(graph.node_capacity(), 0);
  for (std::size_t i = 0; i < graph.order().size(); ++i) facts.place[graph.order()[i].index] = i;
}

Facts facts_of(const Graph& graph) {
  Facts facts;
  facts.inferred = try_infer(graph);
  note_places(graph, facts);
  return facts;
}

bool have_same_shape(const Graph& graph, const Facts& facts, ValueId a, ValueId b) {
  if (facts.inferred) {
    const InferredValue &left = (*facts.inferred)[a.index], &right = (*facts.inferred)[b.index];
    return left.known && right.known && left.info.shape == right.info.shape;
  }
  const auto &left = graph.value(a).shape, &right = graph.value(b).shape;
  if (!left || !right || *left != *right) return false;
  return std::all_of(left->begin(), left->end(), [](const Dim& dim) { return dim.size >= 0 || !dim.symbol.empty(); });
}

// The Conv behind operand `mine`, if the Add alone reads it. A constant operand is no residual but a bias.
NodeId candidate(const Graph& graph, NodeId add, ValueId mine, ValueId other) {
  const Value& value = graph.value(mine);
  if (!value.producer.is_valid() || graph.node(value.producer).op != Op::Conv) return {};
  if (only_reader(graph, mine) != add || graph.value(other).is_constant()) return {};
  return value.producer;
}

NodeId host_of(const Graph& graph, const Facts& facts, NodeId id) {
  const Node& add = graph.node(id);
  if (add.inputs.size() != 2 || is_omitted(add, 0) || is_omitted(add, 1)) return {};
  const ValueId a = add.inputs[0], b = add.inputs[1];
  if (!have_same_shape(graph, facts, a, b)) return {};
  const NodeId left = candidate(graph, id, a, b), right = candidate(graph, id, b, a);
  if (!left.is_valid() || !right.is_valid()) return left.is_valid() ? left : right;
  return facts.place[left.index] > facts.place[right.index] ? left : right;
}

bool is_late(const Graph& graph, const Facts& facts, NodeId add, NodeId conv) {
  for (ValueId operand : graph.node(add).inputs) {
    const NodeId ready = graph.value(operand).producer;
    if (ready.is_valid() && ready != conv && facts.place[ready.index] > facts.place[conv.index]) return true;
  }
  return false;
}

// Takes the node out and writes it again right before `before`, under a new id.
NodeId move_node(Graph& graph, NodeId id, NodeId before) {
  Node copy = graph.node(id);
  graph.remove_node(id);
  return graph.add_node(std::move(copy), before);
}

}  // namespace

Result<int> absorb_residuals(Graph& graph) {
  Facts facts = facts_of(graph);
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).op != Op::Add) continue;
    NodeId host = host_of(graph, facts, id);
    if (host.is_valid() && is_late(graph, facts, id, host)) {
      host = move_node(graph, host, id);
      note_places(graph, facts);
    }
    if (graph.node(id).absorbed_by == host) continue;
    graph.node(id).absorbed_by = host;
    ++changes;
  }
  return changes;
}

}  // namespace ctk::graph
