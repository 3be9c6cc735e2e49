#include "graph/subgraph.h"

#include <algorithm>
#include <map>
#include <set>

namespace ctk::graph {
namespace {

class Extractor {
 public:
  Extractor(const Graph& source, const std::vector<InferredValue>& infos) : source_(source), infos_(infos) {
    out_.graph.name = source.name;
    out_.graph.ir_version = source.ir_version;
    out_.graph.opset = source.opset;
    out_.graph.other_opsets = source.other_opsets;
  }

  Status add_node(NodeId id) {
    const Node& from = source_.node(id);
    Node node = from;
    for (ValueId& input : node.inputs) {
      if (!input.is_valid()) continue;
      CTK_TRY(input, read(input));
    }
    for (ValueId& captured : node.captured) {
      CTK_TRY(captured, read(captured));
    }
    for (ValueId& output : node.outputs) {
      if (output.is_valid()) output = copy(output);
    }
    node.absorbed_by = {};  // set again below, once all nodes have ids
    nodes_[id] = out_.graph.add_node(std::move(node));
    return {};
  }

  void restore_fusions() {
    for (const auto& [from, to] : nodes_) {
      const auto layer = nodes_.find(source_.node(from).absorbed_by);
      if (layer != nodes_.end()) out_.graph.node(to).absorbed_by = layer->second;
    }
  }

  void add_output(ValueId id) {
    out_.graph.add_output(ids_.at(id));
    out_.outputs.push_back(id);
  }

  Subgraph take() { return std::move(out_); }

 private:
  ValueId copy(ValueId id) {
    const Value& value = source_.value(id);
    const ValueId made = out_.graph.add_value(value.name, value.dtype, value.shape);
    out_.graph.value(made).activation_quant = value.activation_quant;
    ids_[id] = made;
    return made;
  }

  Result<ValueId> read(ValueId id) {
    if (const auto known = ids_.find(id); known != ids_.end()) return known->second;
    const Value& value = source_.value(id);
    const ValueId made = copy(id);
    if (value.is_constant()) {
      out_.graph.value(made).constant = value.constant;
      out_.graph.value(made).quantized = value.quantized;
    } else if (const InferredValue& info = infos_[id.index]; info.known && info.info.constant) {
      out_.graph.value(made).constant = info.info.constant;
    } else {
      if (!info.known) return internal_error("the shape of \"" + value.name + "\" is not known");
      DeclaredShape shape(info.info.shape.size());  // sizes stay free: samples may differ
      out_.graph.value(made).shape = shape;
      out_.graph.add_input(made);
      out_.inputs.push_back(id);
    }
    return made;
  }

  const Graph& source_;
  const std::vector<InferredValue>& infos_;
  Subgraph out_;
  std::map<ValueId, ValueId> ids_;
  std::map<NodeId, NodeId> nodes_;
};

}  // namespace

Result<Subgraph> extract(const Graph& graph, std::size_t first, std::size_t last,
                         const std::vector<InferredValue>& infos, const std::vector<ValueId>& wanted) {
  const std::vector<NodeId>& order = graph.order();
  if (first > last || last > order.size()) return internal_error("a range outside the graph's order");
  Extractor extractor(graph, infos);
  std::set<NodeId> inside;
  for (std::size_t i = first; i < last; ++i) {
    CTK_CHECK(extractor.add_node(order[i]));
    inside.insert(order[i]);
  }
  extractor.restore_fusions();
  const std::set<ValueId> asked(wanted.begin(), wanted.end());
  for (std::size_t i = first; i < last; ++i) {
    for (ValueId output : graph.node(order[i]).outputs) {
      if (!output.is_valid()) continue;
      bool is_needed = graph.is_output(output) || asked.contains(output);
      for (NodeId reader : graph.value(output).consumers) is_needed = is_needed || !inside.contains(reader);
      if (is_needed) extractor.add_output(output);
    }
  }
  Subgraph made = extractor.take();
  CTK_CHECK(verify(made.graph));
  return made;
}

Result<Subgraph> extract_between(const Graph& graph, const std::vector<ValueId>& from, const std::vector<ValueId>& to,
                                 const std::vector<InferredValue>& infos) {
  std::set<ValueId> done(from.begin(), from.end());
  std::set<NodeId> needed;
  std::vector<ValueId> pending = to;
  while (!pending.empty()) {
    const ValueId id = pending.back();
    pending.pop_back();
    if (!id.is_valid() || !done.insert(id).second) continue;
    const NodeId producer = graph.value(id).producer;
    const InferredValue& info = infos[id.index];
    const bool is_known = info.known && info.info.constant && std::ranges::count(to, id) == 0;
    if (!producer.is_valid() || is_known || !needed.insert(producer).second) continue;
    const Node& node = graph.node(producer);
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
    pending.insert(pending.end(), node.captured.begin(), node.captured.end());
  }
  Extractor extractor(graph, infos);
  for (NodeId id : graph.order()) {
    if (needed.contains(id)) CTK_CHECK(extractor.add_node(id));
  }
  extractor.restore_fusions();
  for (ValueId id : to) extractor.add_output(id);
  Subgraph made = extractor.take();
  CTK_CHECK(verify(made.graph));
  return made;
}

}  // namespace ctk::graph
