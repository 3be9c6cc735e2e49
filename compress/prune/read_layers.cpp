#include "compress/prune/read_layers.h"

#include <algorithm>

#include "compress/quantize/layer_inputs.h"
#include "compress/quantize/stream.h"

namespace ctk::pruning {

using graph::Coupling;
using graph::Graph;
using graph::Layer;

bool can_refit(const Graph& graph, const Layer& layer) {
  const graph::Value& weight = graph.value(layer.weight);
  return quantization::has_rows(graph, layer) && weight.constant && weight.consumers.size() == 1;
}

std::vector<Layer> reading_layers(const Coupling& coupling) {
  const Graph& graph = coupling.graph();
  std::set<graph::NodeId> readers;
  for (const graph::CoupledGroup& group : coupling.groups()) {
    if (!group.reason.empty()) continue;
    for (const graph::CoupledAxis& axis : group.axes) {
      for (const graph::AxisClaim& claim : axis.readers) {
        if (claim.role == graph::AxisRole::consumes) readers.insert(claim.node);
      }
    }
  }
  std::vector<Layer> layers;
  for (graph::NodeId id : graph.order()) {
    if (!readers.contains(id)) continue;
    const auto layer = graph::layer_of(graph, id);
    if (layer && can_refit(graph, *layer)) layers.push_back(*layer);
  }
  return layers;
}

std::size_t input_axis(const Layer& layer) {
  return layer.channel_axis == 0 ? 1 : 0;
}

std::vector<std::size_t> columns_of(const Coupling& coupling, const Layer& layer,
                                    const std::vector<std::int64_t>& channels) {
  const Shape& shape = coupling.graph().value(layer.weight).constant->shape();
  const auto inner = static_cast<std::size_t>(layer.reduction / shape[input_axis(layer)]);
  std::vector<std::size_t> columns;
  for (std::int64_t channel : channels) {
    for (std::size_t i = 0; i < inner; ++i) columns.push_back(static_cast<std::size_t>(channel) * inner + i);
  }
  return columns;
}

LinearMap map_of(const Graph& graph, const Layer& layer) {
  const auto n = static_cast<std::size_t>(layer.channels);
  LinearMap map{quantization::weight_rows(layer, *graph.value(layer.weight).constant), std::vector<float>(n, 0.0f)};
  if (!layer.bias.is_valid()) return map;
  const auto bias = graph.value(layer.bias).constant->values<float>();
  for (std::size_t i = 0; i < n; ++i) map.intercept[i] = bias[bias.size() == 1 ? 0 : i];
  return map;
}

LinearMap rows_of(const LinearMap& map, const std::vector<std::int64_t>& rows) {
  const std::size_t k = map.weights.size() / std::max<std::size_t>(1, map.intercept.size());
  LinearMap part;
  for (std::int64_t row : rows) {
    const auto first = map.weights.begin() + row * static_cast<std::int64_t>(k);
    part.weights.insert(part.weights.end(), first, first + static_cast<std::ptrdiff_t>(k));
    part.intercept.push_back(map.intercept[static_cast<std::size_t>(row)]);
  }
  return part;
}

bool has_own_bias(const Graph& graph, const Layer& layer) {
  if (!layer.bias.is_valid()) return false;
  const graph::Value& bias = graph.value(layer.bias);
  return bias.consumers.size() == 1 && static_cast<std::int64_t>(bias.constant->size()) == layer.channels;
}

void set_map(Graph& graph, const Layer& layer, const LinearMap& map) {
  const Shape shape = graph.value(layer.weight).constant->shape();
  const std::vector<float> stored = quantization::from_rows<float>(layer, map.weights);
  graph.value(layer.weight).constant = Tensor::of<float>(shape, stored);
  if (!has_own_bias(graph, layer)) return;
  const Shape bias_shape = graph.value(layer.bias).constant->shape();
  graph.value(layer.bias).constant = Tensor::of<float>(bias_shape, map.intercept);
}

}  // namespace ctk::pruning
