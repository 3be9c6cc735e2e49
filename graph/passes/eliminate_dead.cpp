// Removes nodes none of whose outputs is read or a graph output, and constants nobody reads. Graph inputs stay.
#include <algorithm>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

bool is_dead(const Graph& graph, const Node& node) {
  return std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return id.is_valid() && (!graph.value(id).consumers.empty() || graph.is_output(id));
  });
}

int live_constants(const Graph& graph) {
  int count = 0;
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    const Value& value = graph.value(ValueId{static_cast<std::uint32_t>(i)});
    count += !value.is_removed && value.is_constant() ? 1 : 0;
  }
  return count;
}

}  // namespace

Result<int> eliminate_dead(Graph& graph) {
  int changes = 0;
  // From the back, so that a whole dead chain goes in one walk.
  const std::vector<NodeId> order = graph.order();
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    if (!is_dead(graph, graph.node(*id))) continue;
    graph.remove_node(*id);
    ++changes;
  }
  const int before = live_constants(graph);
  graph.remove_dead_values();
  return changes + before - live_constants(graph);
}

}  // namespace ctk::graph
