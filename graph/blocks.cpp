#include "graph/blocks.h"

#include <algorithm>

#include "graph/layer.h"

namespace ctk::graph {

std::vector<Cut> cuts_of(const Graph& graph) {
  const std::vector<NodeId>& order = graph.order();
  std::vector<bool> depends(graph.value_capacity());
  std::vector<std::size_t> place_of(graph.node_capacity());
  for (std::size_t at = 0; at < order.size(); ++at) place_of[order[at].index] = at;
  // Change of how many values cross, and of the sum of their ids, from each place on: one value has its id as sum.
  std::vector<std::int64_t> more(order.size() + 2), ids(order.size() + 2);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Node& node = graph.node(order[at]);
    const bool is_size = node.op == Op::Shape;
    const bool reads = std::ranges::any_of(node.inputs, [&](ValueId id) { return id.is_valid() && depends[id.index]; });
    if (is_size || (!reads && !layer_of(graph, order[at]))) continue;
    for (ValueId output : node.outputs) {
      if (!output.is_valid()) continue;
      depends[output.index] = true;
      std::size_t last = at;
      for (NodeId reader : graph.value(output).consumers) last = std::max(last, place_of[reader.index]);
      if (graph.is_output(output)) last = order.size();
      more[at + 1] += 1;
      ids[at + 1] += output.index;
      more[last + 1] -= 1;
      ids[last + 1] -= output.index;
    }
  }
  std::vector<Cut> cuts;
  std::int64_t crossing = 0, sum = 0;
  for (std::size_t place = 0; place <= order.size(); ++place) {
    crossing += more[place];
    sum += ids[place];
    if (crossing != 1) continue;
    const ValueId value{static_cast<std::uint32_t>(sum)};
    if (!cuts.empty() && cuts.back().value == value && cuts.back().place + 1 == place) cuts.pop_back();
    cuts.push_back({place, value});
  }
  return cuts;
}

}  // namespace ctk::graph
