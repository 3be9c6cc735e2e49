// Notes on an Add of two equal shapes which Conv adds the other operand in its own last step: the operand's Conv that
// comes last in graph order, if the Add alone reads it and the other operand is ready by then. An activation the Add
// has absorbed stays with the Add, so the chain Conv, Add, Relu runs as one.
#include <algorithm>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

struct Facts {
  std::optional<std::vector<InferredValue>> inferred;
  std::vector<std::size_t> place;  // of each node in the order
};

Facts facts_of(const Graph& graph) {
  Facts facts;
  // Two samples, so that an operand that is one row for all of a batch shows.
  facts.inferred = try_infer(graph, 2);
  if (!facts.inferred) facts.inferred = try_infer(graph, 1);
  facts.place.resize(graph.node_capacity(), 0);
  for (std::size_t i = 0; i < graph.order().size(); ++i) facts.place[graph.order()[i].index] = i;
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

// The Conv behind operand `mine`, if it can add operand `other`.
NodeId candidate(const Graph& graph, const Facts& facts, NodeId add, ValueId mine, ValueId other) {
  const Value& value = graph.value(mine);
  if (!value.producer.is_valid() || graph.node(value.producer).op != Op::Conv) return {};
  if (value.activation_quant || only_reader(graph, mine) != add || graph.value(other).is_constant()) return {};
  const NodeId ready = graph.value(other).producer;
  if (ready.is_valid() && facts.place[ready.index] >= facts.place[value.producer.index]) return {};
  return value.producer;
}

NodeId host_of(const Graph& graph, const Facts& facts, NodeId id) {
  const Node& add = graph.node(id);
  if (add.inputs.size() != 2 || is_omitted(add, 0) || is_omitted(add, 1)) return {};
  const ValueId a = add.inputs[0], b = add.inputs[1];
  if (!have_same_shape(graph, facts, a, b)) return {};
  // At most one of the two qualifies: the other operand must be ready before, so it is the later Conv.
  const NodeId first = candidate(graph, facts, id, a, b);
  return first.is_valid() ? first : candidate(graph, facts, id, b, a);
}

}  // namespace

Result<int> absorb_residuals(Graph& graph) {
  const Facts facts = facts_of(graph);
  int changes = 0;
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (node.op != Op::Add) continue;
    const NodeId host = host_of(graph, facts, id);
    if (node.absorbed_by == host) continue;
    node.absorbed_by = host;
    ++changes;
  }
  return changes;
}

}  // namespace ctk::graph
