#include "compress/quantize/bias_correction.h"

namespace ctk::quantization {

using graph::Graph;
using graph::Layer;
using graph::Op;
using graph::ValueId;

namespace {

// Input channel that flat weight element i multiplies.
std::size_t input_channel(Op op, const Shape& shape, std::size_t i, std::size_t channel, std::int64_t groups,
                          int channel_axis, std::int64_t channels) {
  if (op == Op::Gemm || op == Op::MatMul) {
    const auto columns = static_cast<std::size_t>(shape[1]);
    return channel_axis == 0 ? i % columns : i / columns;
  }
  std::size_t taps = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) taps *= static_cast<std::size_t>(shape[d]);
  if (op == Op::ConvTranspose) return i / (taps * static_cast<std::size_t>(shape[1]));
  const auto per_group = static_cast<std::size_t>(shape[1]);
  const std::size_t group = channel / static_cast<std::size_t>(channels / groups);
  return group * per_group + i / taps % per_group;
}

}  // namespace

Result<bool> correct_bias(Graph& graph, const Layer& layer, const Tensor& original,
                          const std::map<std::string, std::vector<double>>& input_means) {
  const auto means = input_means.find(graph.value(layer.input).name);
  const graph::Node& node = graph.node(layer.node);
  if (means == input_means.end() || node.op == Op::MatMul) return false;  // MatMul has no bias input
  const std::int64_t groups = node.attributes.get_int("group", 1);
  const Tensor rounded = dequantize(*graph.value(layer.weight).quantized);
  const auto channel = channel_of_elements(original.shape(), layer.channel_axis, layer.group_count);
  std::vector<double> shift(static_cast<std::size_t>(layer.channels), 0.0);
  const auto before = original.values<float>();
  const auto after = rounded.values<float>();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::size_t k =
        input_channel(node.op, original.shape(), i, channel[i], groups, layer.channel_axis, layer.channels);
    if (k >= means->second.size()) return false;
    shift[channel[i]] += (static_cast<double>(before[i]) - static_cast<double>(after[i])) * means->second[k];
  }
  std::vector<float> bias(shift.size(), 0.0f);
  if (layer.bias.is_valid()) {
    const auto old = graph.value(layer.bias).constant->values<float>();
    for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = old[old.size() == 1 ? 0 : c];
  }
  for (std::size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(static_cast<double>(bias[c]) + shift[c]);
  const Tensor corrected = Tensor::of<float>({layer.channels}, bias);
  const bool is_own = layer.bias.is_valid() && graph.value(layer.bias).consumers.size() == 1;
  if (is_own && graph.value(layer.bias).constant->shape() == corrected.shape()) {
    graph.value(layer.bias).constant = corrected;
  } else {
    const ValueId made = graph.add_constant(graph.unique_name(graph.value(layer.weight).name + "_bias"), corrected);
    graph.set_input(layer.node, 2, made);
  }
  return true;
}

}  // namespace ctk::quantization
