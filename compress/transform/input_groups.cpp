#include "compress/transform/input_groups.h"

#include <algorithm>

#include "compress/quantize/stream.h"

namespace ctk::transform {
namespace {

using graph::Graph;
using graph::Layer;
using graph::NodeId;
using graph::Op;

std::size_t features_of(const Graph& graph, const Layer& layer) {
  const graph::Node& node = graph.node(layer.node);
  const graph::Value& weight = graph.value(layer.weight);
  if (quantization::is_product(graph, layer)) return static_cast<std::size_t>(layer.reduction);
  const Shape& shape = weight.constant->shape();
  const std::int64_t groups = node.attributes.get_int("group", 1);
  return static_cast<std::size_t>(node.op == Op::ConvTranspose ? shape[0] : shape[1] * groups);
}

// Why a layer's inputs may not be scaled.
std::string reason_against(const Graph& graph, const Layer& layer, const InputGroup& group) {
  const graph::Value& weight = graph.value(layer.weight);
  if (weight.quantized != nullptr) return "its weight is coded already";
  if (!quantization::has_rows(graph, layer))
    return "a convolution with groups, or of more than two dimensions, reads it";
  if (graph.node(layer.node).attributes.get_int("transA", 0) != 0) return "its input is read transposed";
  if (graph.is_output(layer.weight)) return "its weight is an output of the graph";
  for (const Layer& other : group.layers) {
    if (other.weight == layer.weight && other.channel_axis != layer.channel_axis)
      return "its weight is read along both dimensions";
  }
  for (const NodeId reader : weight.consumers) {
    const bool is_ours = std::ranges::any_of(group.layers, [&](const Layer& other) { return other.node == reader; });
    if (!is_ours) return "its weight is shared with " + graph.address(reader) + ", which reads something else";
  }
  return "";
}

}  // namespace

const Layer& InputGroup::sampled() const {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (is_wanted[i]) return layers[i];
  }
  return layers[0];
}

std::vector<InputGroup> input_groups(const Graph& graph, const std::set<std::string>& wanted) {
  std::vector<InputGroup> groups;
  for (const Layer& layer : graph::layers_of(graph)) {
    if (graph.value(layer.weight).constant == std::nullopt) continue;
    const bool has_channels = !quantization::is_product(graph, layer);
    const std::size_t features = features_of(graph, layer);
    auto known = std::ranges::find_if(groups, [&](const InputGroup& group) {
      return group.input == layer.input && group.has_channels == has_channels && group.features == features;
    });
    if (known == groups.end()) {
      groups.push_back({layer.input, has_channels, features, {}, {}, ""});
      known = groups.end() - 1;
    }
    known->layers.push_back(layer);
    known->is_wanted.push_back(wanted.contains(graph.address(layer.node)));
  }
  std::erase_if(groups, [](const InputGroup& group) { return std::ranges::count(group.is_wanted, true) == 0; });
  for (InputGroup& group : groups) {
    for (const Layer& layer : group.layers) {
      if (group.reason.empty()) group.reason = reason_against(graph, layer, group);
    }
  }
  return groups;
}

ElementMap features_of_weight(const Graph& graph, const Layer& layer) {
  const auto k = static_cast<std::size_t>(layer.reduction), n = static_cast<std::size_t>(layer.channels);
  if (quantization::is_product(graph, layer)) {
    if (layer.channel_axis == 0) return [k](std::size_t e) { return e % k; };
    return [n](std::size_t e) { return e / n; };
  }
  const Shape& shape = graph.value(layer.weight).constant->shape();
  const auto channels = static_cast<std::size_t>(shape[1]);
  const std::size_t window = k / std::max<std::size_t>(1, channels);
  return [window, channels](std::size_t e) { return e / window % channels; };
}

ElementMap channels_of_weight(const Graph& graph, const Layer& layer) {
  const auto k = static_cast<std::size_t>(layer.reduction), n = static_cast<std::size_t>(layer.channels);
  if (quantization::is_product(graph, layer) && layer.channel_axis != 0) return [n](std::size_t e) { return e % n; };
  return [k](std::size_t e) { return e / k; };
}

void scale_constant(Graph& graph, NodeId node, std::size_t input, const ElementMap& map, std::span<const float> factors,
                    std::size_t spread) {
  const graph::ValueId id = graph.node(node).inputs[input];
  const Tensor& old = *graph.value(id).constant;
  Tensor scaled = old.clone();
  if (spread > 1 && old.size() == 1) {
    const std::vector<float> same(spread, old.values<float>()[0]);
    scaled = Tensor::of<float>({static_cast<std::int64_t>(spread)}, same);
  }
  const auto values = scaled.mutable_values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[map(i)];
  if (graph.value(id).consumers.size() == 1 && !graph.is_output(id)) {
    graph.value(id).constant = std::move(scaled);
    if (graph.value(id).shape) graph.value(id).shape.reset();
    return;
  }
  const std::string name = graph.unique_name(graph.value(id).name + "_for_" + graph.address(node));
  graph.set_input(node, input, graph.add_constant(name, std::move(scaled)));
}

}  // namespace ctk::transform
