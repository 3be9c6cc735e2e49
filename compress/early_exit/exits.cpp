#include "compress/early_exit/exits.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/printable.h"

namespace ctk::exits {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ValueId;
using nlohmann::json;

using Attrs = std::vector<std::pair<std::string, graph::Attribute>>;

std::vector<NodeId>::const_iterator place_of(const Graph& graph, NodeId node) {
  return std::ranges::find(graph.order(), node);
}

// Adds nodes of one output each at one place of the order.
class Writer {
 public:
  Writer(Graph& graph, NodeId before) : graph_(graph), before_(before) {}

  static Writer behind(Graph& graph, ValueId value) {
    const auto at = place_of(graph, graph.value(value).producer);
    const bool is_last = at == graph.order().end() || at + 1 == graph.order().end();
    return {graph, is_last ? NodeId{} : *(at + 1)};
  }

  ValueId node(const std::string& op, std::vector<ValueId> inputs, const std::string& name,
               const Attrs& attributes = {}, DType dtype = DType::f32) {
    const ValueId output = graph_.add_value(graph_.unique_name(name), dtype);
    node_to(op, std::move(inputs), output, attributes);
    return output;
  }
  void node_to(const std::string& op, std::vector<ValueId> inputs, ValueId output, const Attrs& attributes = {}) {
    graph::Node node;
    node.name = graph_.unique_name(graph_.value(output).name + "_node");
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    for (const auto& [key, value] : attributes) node.attributes.set(key, value);
    graph_.add_node(std::move(node), before_);
  }
  ValueId constant(const std::string& name, Tensor tensor) {
    return graph_.add_constant(graph_.unique_name(name), std::move(tensor));
  }
  ValueId integer(const std::string& name, std::int64_t value) {
    return constant(name, Tensor::of<std::int64_t>({1}, std::span<const std::int64_t>(&value, 1)));
  }

 private:
  Graph& graph_;
  NodeId before_;
};

// A layer that computes what reads `value` in its own last step would have to show `value` too.
void separate_readers(Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (!producer.is_valid()) return;
  std::set<NodeId> hosts{producer};
  if (graph.node(producer).absorbed_by.is_valid()) hosts.insert(graph.node(producer).absorbed_by);
  for (auto at = place_of(graph, producer) + 1; at != graph.order().end(); ++at) {
    if (!hosts.contains(graph.node(*at).absorbed_by)) continue;
    graph.node(*at).absorbed_by = {};
    hosts.insert(*at);
  }
}

// Confidence is the largest softmax probability: a pool over classes, since there is no operator for the maximum alone.
ValueId add_confidence(Writer& write, ValueId logits, std::int64_t classes, const std::string& name) {
  const ValueId probabilities = write.node("Softmax", {logits}, name + "_probabilities", {{"axis", std::int64_t{-1}}});
  const ValueId rows = write.node("Unsqueeze", {probabilities, write.integer(name + "_axis", 1)}, name + "_rows");
  const ValueId most =
      write.node("MaxPool", {rows}, name + "_most", {{"kernel_shape", std::vector<std::int64_t>{classes}}});
  return write.node("Flatten", {most}, name + "_confidence", {{"axis", std::int64_t{1}}});
}

ValueId find(const Graph& graph, const std::string& name) {
  return graph.find_value(name).value_or(ValueId{});
}

}  // namespace

ValueId add_mean(Graph& graph, ValueId feature, const std::vector<graph::InferredValue>& infos,
                 const std::string& name) {
  const std::size_t rank = infos[feature.index].info.shape.size();
  if (rank == 2) return feature;
  separate_readers(graph, feature);
  Writer write = Writer::behind(graph, feature);
  if (rank == 3) {
    return write.node("ReduceMean", {feature, write.integer(name + "_tokens", 1)}, name + "_mean",
                      {{"keepdims", std::int64_t{0}}});
  }
  const ValueId pooled = write.node("GlobalAveragePool", {feature}, name + "_pool");
  return write.node("Flatten", {pooled}, name + "_mean", {{"axis", std::int64_t{1}}});
}

Status add_exits(Graph& graph, const std::vector<Head>& heads, const std::vector<graph::InferredValue>& infos) {
  const ValueId output = graph.outputs()[0];
  const ValueId end = graph.add_value(graph.unique_name(graph.value(output).name + "_end"), graph.value(output).dtype,
                                      graph.value(output).shape);
  graph.move_producer(output, end);
  graph.replace_uses(output, end);
  struct Way {
    ValueId logits, confidence, threshold;
  };
  std::vector<Way> ways;
  json exits = json::array();
  for (const Head& head : heads) {
    const std::string name = "exit_" + std::to_string(ways.size() + 1);
    const ValueId mean = add_mean(graph, head.feature, infos, name);
    if (mean == head.feature) separate_readers(graph, mean);
    Writer write = Writer::behind(graph, mean);
    const ValueId weight = write.constant(name + "_weight", head.weight);
    const ValueId bias = write.constant(name + "_bias", head.bias);
    const ValueId logits = write.node("Gemm", {mean, weight, bias}, name + "_logits", {{"transB", std::int64_t{1}}});
    const ValueId confidence = add_confidence(write, logits, head.bias.shape()[0], name);
    const Tensor least = Tensor::of<float>({1}, std::span<const float>(&head.threshold, 1));
    ways.push_back({logits, confidence, write.constant(name + "_threshold", least)});
    exits.push_back({{"feature", graph.value(head.feature).name},
                     {"logits", graph.value(logits).name},
                     {"confidence", graph.value(confidence).name},
                     {"threshold", head.threshold}});
  }
  Writer write(graph, {});
  ValueId answer = end;
  for (std::size_t i = ways.size(); i-- > 0;) {
    const std::string name = "exit_" + std::to_string(i + 1);
    const Way& way = ways[i];
    // c >= t is max(c, t) == c; a confidence that is no number is not.
    const ValueId greater = write.node("Max", {way.confidence, way.threshold}, name + "_greater");
    const ValueId leaves = write.node("Equal", {greater, way.confidence}, name + "_leaves", {}, DType::boolean);
    if (i == 0)
      write.node_to("Where", {leaves, way.logits, answer}, output);
    else
      answer = write.node("Where", {leaves, way.logits, answer}, name + "_choice");
  }
  const json all{{"exits", exits}, {"end", graph.value(end).name}};
  std::erase_if(graph.metadata, [](const auto& entry) { return entry.first == kKey; });
  graph.metadata.emplace_back(kKey, all.dump());
  return graph::verify(graph);
}

Status set_thresholds(Graph& graph, const std::vector<float>& thresholds) {
  CTK_TRY(const Exits found, exits_of(graph));
  const auto entry = std::ranges::find(graph.metadata, kKey, &std::pair<std::string, std::string>::first);
  json all = json::parse(entry->second);
  for (std::size_t i = 0; i < found.exits.size(); ++i) {
    // The other input of the maximum that is taken with the confidence.
    const ValueId confidence = find(graph, found.exits[i].confidence);
    for (NodeId reader : graph.value(confidence).consumers) {
      const graph::Node& node = graph.node(reader);
      if (node.op_type == "Max")
        graph.value(node.inputs[1]).constant = Tensor::of<float>({1}, std::span<const float>(&thresholds[i], 1));
    }
    all["exits"][i]["threshold"] = thresholds[i];
  }
  entry->second = all.dump();
  return {};
}

Result<Exits> exits_of(const Graph& graph) {
  Exits found;
  const auto entry = std::ranges::find(graph.metadata, kKey, &std::pair<std::string, std::string>::first);
  if (entry == graph.metadata.end()) return found;
  const auto wrong = [&](const std::string& what) {
    return input_error("metadata \"" + std::string(kKey) + "\": expected exits as a run writes them, found " + what +
                       ". Remove the entry, or make the model again");
  };
  try {
    const json all = json::parse(entry->second);
    found.end = all.at("end").get<std::string>();
    for (const json& exit : all.at("exits")) {
      found.exits.push_back({exit.at("feature").get<std::string>(), exit.at("logits").get<std::string>(),
                             exit.at("confidence").get<std::string>(), exit.at("threshold").get<float>()});
    }
  } catch (const json::exception&) {
    return wrong("\"" + printable(entry->second.substr(0, 60)) + "\"");
  }
  std::vector<std::string> names{found.end};
  for (const Exit& exit : found.exits) names.insert(names.end(), {exit.feature, exit.logits, exit.confidence});
  for (const std::string& name : names) {
    if (!graph.find_value(name)) return wrong("\"" + printable(name) + "\", which is no value of the graph");
  }
  return found;
}

Result<std::vector<graph::Subgraph>> stages_of(const Graph& graph, const Exits& exits,
                                               const std::vector<graph::InferredValue>& infos) {
  std::vector<graph::Subgraph> stages;
  std::vector<ValueId> from;
  const auto first = graph.inputs().empty() ? std::nullopt : graph.value(graph.inputs()[0]).shape;
  for (std::size_t i = 0; i <= exits.exits.size(); ++i) {
    std::vector<ValueId> to{find(graph, exits.end)};
    if (i < exits.exits.size()) {
      const Exit& exit = exits.exits[i];
      to = {find(graph, exit.feature), find(graph, exit.logits), find(graph, exit.confidence)};
    }
    CTK_TRY(graph::Subgraph part, graph::extract_between(graph, from, to, infos));
    for (std::size_t in = 0; in < part.inputs.size(); ++in) {
      const graph::Value& value = graph.value(part.inputs[in]);
      graph::DeclaredShape shape;
      for (std::int64_t size : infos[part.inputs[in].index].info.shape) shape.push_back({size, ""});
      if (!shape.empty() && first && !first->empty()) shape[0] = (*first)[0];
      const bool is_given = std::ranges::count(graph.inputs(), part.inputs[in]) != 0 && value.shape;
      part.graph.value(part.graph.inputs()[in]).shape = is_given ? value.shape : shape;
    }
    stages.push_back(std::move(part));
    if (i < exits.exits.size()) from.push_back(find(graph, exits.exits[i].feature));
  }
  return stages;
}

}  // namespace ctk::exits
