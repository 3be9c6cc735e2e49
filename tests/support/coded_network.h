// Turns a float network into one of codes without calibration: values are made up, forms are those of a real run.
#pragma once

#include "graph/graph.h"
#include "graph/layer.h"

namespace ctk::test {

// Every layer and every value in codes, as a run of w8a8_c would leave the graph.
inline void code_everything(graph::Graph& graph) {
  const QuantScheme scheme = parse_scheme("w8a8_c").value();
  for (const graph::Layer& layer : graph::layers_of(graph)) {
    graph::Value& weight = graph.value(layer.weight);
    QuantTensor coded;
    coded.scheme = scheme;
    coded.channel_axis = layer.channel_axis;
    coded.method = "test";
    coded.scales.assign(static_cast<std::size_t>(layer.channels), 0.01f);
    std::vector<std::int8_t> codes(weight.constant->size());
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(static_cast<int>(i % 255) - 127);
    coded.codes = Tensor::of<std::int8_t>(weight.constant->shape(), codes);
    weight.constant.reset();
    weight.quantized = std::make_shared<const QuantTensor>(std::move(coded));
    graph.node(layer.node).scheme = scheme;
  }
  for (std::size_t i = 0; i < graph.value_capacity(); ++i) {
    graph::Value& value = graph.value(graph::ValueId{static_cast<std::uint32_t>(i)});
    bool is_activation = !value.is_removed && !value.is_constant() && value.dtype == DType::f32;
    // What an activation behind a layer reads is never stored.
    for (graph::NodeId reader : value.consumers) {
      const graph::Node& node = graph.node(reader);
      const bool clamps = node.op == graph::Op::Relu || node.op == graph::Op::Clip;
      if (clamps && node.absorbed_by.is_valid() && node.absorbed_by == value.producer) is_activation = false;
    }
    if (is_activation) value.activation_quant = ActivationQuant{0.05f, 128};
  }
}

}  // namespace ctk::test
