// Scales a layer's weights and bias by the batch normalization behind it, and removes that node.
// In:  BatchNormalization over C channels, alone behind a Conv, ConvTranspose or Gemm with constant float32 weight.
// Out: W'[c] = W[c] * s[c], b'[c] = b[c] * s[c] + shift[c] - mean[c] * s[c], with s = scale / sqrt(variance + epsilon).
// Arithmetic in double, one rounding to float32. A weight or bias with other readers is copied under a new name.
// Left alone: variance + epsilon <= 0, and factors that would turn a finite weight into an infinite one.
#include <cmath>
#include <span>
#include <string>

#include "graph/passes/rewrite.h"

namespace ctk::graph {
namespace {

struct Affine {
  std::vector<double> factor, offset;  // [channels]: y = x * factor + offset
};

std::optional<std::span<const float>> floats_of(const Graph& graph, const Node& node, std::size_t input) {
  const Tensor* tensor = constant_of(graph, node, input);
  if (tensor == nullptr || tensor->dtype() != DType::f32) return std::nullopt;
  return tensor->values<float>();
}

std::optional<Affine> affine_of(const Graph& graph, const Node& norm) {
  if (norm.attributes.get_int("training_mode", 0) != 0) return std::nullopt;
  const auto scale = floats_of(graph, norm, 1), shift = floats_of(graph, norm, 2);
  const auto mean = floats_of(graph, norm, 3), variance = floats_of(graph, norm, 4);
  if (!scale || !shift || !mean || !variance) return std::nullopt;
  const std::size_t channels = scale->size();
  if (shift->size() != channels || mean->size() != channels || variance->size() != channels) return std::nullopt;
  const double epsilon = norm.attributes.get_float("epsilon", 1e-5f);
  Affine affine;
  for (std::size_t c = 0; c < channels; ++c) {
    const double spread = static_cast<double>((*variance)[c]) + epsilon;
    if (!(spread > 0.0)) return std::nullopt;
    const double factor = (*scale)[c] / std::sqrt(spread);
    affine.factor.push_back(factor);
    affine.offset.push_back((*shift)[c] - (*mean)[c] * factor);
  }
  return affine;
}

// Which output channel each weight element belongs to, or nothing when the weight does not have that many channels.
std::optional<std::vector<std::uint32_t>> channels_of(const Node& layer, const Shape& weight, std::size_t channels) {
  const auto count = static_cast<std::int64_t>(channels);
  if (layer.op == Op::Gemm) {
    if (weight.size() != 2) return std::nullopt;
    const int axis = layer.attributes.get_int("transB", 0) != 0 ? 0 : 1;
    if (weight[static_cast<std::size_t>(axis)] != count) return std::nullopt;
    return channel_of_elements(weight, axis, 1);
  }
  if (weight.size() < 3) return std::nullopt;
  if (layer.op == Op::Conv) {
    if (weight[0] != count) return std::nullopt;
    return channel_of_elements(weight, 0, 1);
  }
  const std::int64_t group = layer.attributes.get_int("group", 1);
  if (group < 1 || weight[0] % group != 0 || count % group != 0 || weight[1] != count / group) return std::nullopt;
  return channel_of_elements(weight, 1, static_cast<int>(group));
}

// The layer's bias as one number a channel (times Gemm's beta); zeros when it has none.
std::optional<std::vector<double>> bias_of(const Graph& graph, const Node& layer, std::size_t channels) {
  std::vector<double> bias(channels, 0.0);
  if (is_omitted(layer, 2)) return bias;
  const auto given = floats_of(graph, layer, 2);
  if (!given) return std::nullopt;
  const Shape& shape = graph.value(layer.inputs[2]).constant->shape();
  double factor = 1.0;
  if (layer.op == Op::Gemm) {
    factor = layer.attributes.get_float("beta", 1.0f);
    if (shape.size() > 2 || (shape.size() == 2 && shape[0] != 1)) return std::nullopt;
    if (given->size() != 1 && given->size() != channels) return std::nullopt;
  } else if (shape.size() != 1 || given->size() != channels) {
    return std::nullopt;
  }
  for (std::size_t c = 0; c < channels; ++c) bias[c] = factor * (*given)[given->size() == 1 ? 0 : c];
  return bias;
}

// Gives the layer a new constant as input `index`; the old one is overwritten only if nobody else reads it.
void put_constant(Graph& graph, NodeId layer, std::size_t index, const std::string& wish, Tensor tensor) {
  if (!is_omitted(graph.node(layer), index)) {
    const ValueId old = graph.node(layer).inputs[index];
    if (only_reader(graph, old) == layer) {
      Value& value = graph.value(old);
      value.shape.emplace();
      for (std::int64_t dim : tensor.shape()) value.shape->push_back({dim, ""});
      value.constant = std::move(tensor);
      return;
    }
  }
  graph.set_input(layer, index, graph.add_constant(graph.unique_name(wish), std::move(tensor)));
}

bool has_become_infinite(float after, float before) {
  return !std::isfinite(after) && std::isfinite(before);
}

bool fold_into(Graph& graph, NodeId layer_id, NodeId norm_id) {
  const Node& layer = graph.node(layer_id);
  const auto affine = affine_of(graph, graph.node(norm_id));
  const auto weight = floats_of(graph, layer, 1);
  if (!affine || !weight) return false;
  const std::size_t channels = affine->factor.size();
  const Shape shape = graph.value(layer.inputs[1]).constant->shape();
  const auto channel = channels_of(layer, shape, channels);
  const auto bias = bias_of(graph, layer, channels);
  if (!channel || !bias) return false;

  auto new_weight = Tensor::zeros(DType::f32, shape);
  auto new_bias = Tensor::zeros(DType::f32, {static_cast<std::int64_t>(channels)});
  if (!new_weight || !new_bias) return false;
  const auto to = new_weight->mutable_values<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>((*weight)[i] * affine->factor[(*channel)[i]]);
    if (has_become_infinite(to[i], (*weight)[i])) return false;
  }
  const auto shifts = new_bias->mutable_values<float>();
  for (std::size_t c = 0; c < channels; ++c) {
    shifts[c] = static_cast<float>((*bias)[c] * affine->factor[c] + affine->offset[c]);
    if (!std::isfinite(shifts[c])) return false;
  }
  const std::string weight_name = graph.value(layer.inputs[1]).name;
  const std::string bias_name =
      is_omitted(layer, 2) ? graph.address(layer_id) + "_bias" : graph.value(layer.inputs[2]).name + "_folded";
  put_constant(graph, layer_id, 1, weight_name + "_folded", std::move(*new_weight));
  put_constant(graph, layer_id, 2, bias_name, std::move(*new_bias));
  if (graph.node(layer_id).op == Op::Gemm) graph.node(layer_id).attributes.set("beta", 1.0f);
  return true;
}

}  // namespace

Result<int> fold_batchnorm(Graph& graph) {
  int changes = 0;
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (graph.node(id).op != Op::BatchNormalization || is_omitted(graph.node(id), 0)) continue;
    const ValueId from = graph.node(id).inputs[0];
    const NodeId layer = graph.value(from).producer;
    if (!layer.is_valid() || only_reader(graph, from) != id || graph.value(from).activation_quant) continue;
    const Op op = graph.node(layer).op;
    if (op != Op::Conv && op != Op::ConvTranspose && op != Op::Gemm) continue;
    if (!can_bypass(graph, id, from) || !fold_into(graph, layer, id)) continue;
    bypass(graph, id, from);
    ++changes;
  }
  if (changes != 0) graph.remove_dead_values();
  return changes;
}

}  // namespace ctk::graph
