#include "export/onnx_qdq.h"

#include <algorithm>
#include <limits>

#include "core/printable.h"
#include "graph/floats.h"
#include "graph/layer.h"
#include "graph/onnx/write.h"

namespace ctk::exporter {
namespace {

using graph::Graph;
using graph::Layer;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

class QdqBuilder {
 public:
  explicit QdqBuilder(Graph graph) : graph_(std::move(graph)) {}

  Result<Graph> run() {
    const std::vector<Layer> layers = graph::layers_of(graph_);
    for (const Layer& layer : layers) CTK_CHECK(write_bias(layer));
    for (const Layer& layer : layers) CTK_CHECK(write_weight(layer));
    CTK_CHECK(write_other_coded());
    const std::size_t count = graph_.value_capacity();  // values made from here on bear no notes
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId id{static_cast<std::uint32_t>(i)};
      if (!graph_.value(id).is_removed && graph_.value(id).activation_quant) write_activation(id);
    }
    for (NodeId id : graph_.order()) {
      graph_.node(id).scheme = {};
      graph_.node(id).absorbed_by = {};
    }
    graph_.remove_dead_values();
    CTK_CHECK(graph_.sort());
    CTK_CHECK(verify(graph_));
    return std::move(graph_);
  }

 private:
  ValueId constant(const std::string& wish, Tensor tensor) {
    return graph_.add_constant(graph_.unique_name(wish), std::move(tensor));
  }

  NodeId node(const char* op, const std::string& wish, std::vector<ValueId> inputs, ValueId output, int axis = -1) {
    Node made;
    made.op_type = op;
    made.name = graph_.unique_name(wish);
    made.inputs = std::move(inputs);
    made.outputs = {output};
    if (axis >= 0) made.attributes.set("axis", static_cast<std::int64_t>(axis));
    return graph_.add_node(std::move(made));  // order is restored by sort() at the end
  }

  // Scales, or zero points, as DequantizeLinear wants them. Blocked ones lie as the weight does: [channels, groups] or
  // [groups, channels].
  template <class T>
  static Tensor beside_codes(const QuantTensor& weight, const std::vector<T>& numbers) {
    if (weight.scheme.granularity == Granularity::per_group) {
      const Shape& shape = weight.codes.shape();
      const auto groups = static_cast<std::int64_t>(groups_of(shape, weight.channel_axis, weight.scheme));
      const std::int64_t channels = shape[static_cast<std::size_t>(weight.channel_axis)];
      if (weight.channel_axis == 0) return Tensor::of<T>({channels, groups}, numbers);
      std::vector<T> turned(numbers.size());
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t g = 0; g < groups; ++g)
          turned[static_cast<std::size_t>(g * channels + c)] = numbers[static_cast<std::size_t>(c * groups + g)];
      }
      return Tensor::of<T>({groups, channels}, turned);
    }
    if (numbers.size() == 1) return Tensor::scalar<T>(numbers[0]);
    return Tensor::of<T>({static_cast<std::int64_t>(numbers.size())}, numbers);
  }

  // ONNX has signed integers of 4 and 8 bits: the narrower that holds the codes.
  static int stored_bits(const QuantTensor& weight) { return weight.scheme.weight_bits <= 4 ? 4 : 8; }

  Status write_weight(const Layer& layer) {
    const auto coded = graph_.value(layer.weight).quantized;
    if (coded == nullptr) return {};  // float, or the first layer that shares it has written it
    const std::string name = graph_.value(layer.weight).name;
    const ValueId real = graph_.add_value(graph_.unique_name(name + "_dq"), DType::f32);
    if (coded->scheme.is_integer_weight()) {
      if (coded->group_count > 1 && coded->scales.size() > 1) {
        return input_error(printable(graph_.address(layer.node)) +
                           ": a grouped ConvTranspose with one scale a channel has no Q/DQ "
                           "form. Use a per-tensor scheme (w8a8_t) for this layer");
      }
      std::vector<ValueId> inputs = {layer.weight, constant(name + "_scale", beside_codes(*coded, coded->scales))};
      if (coded->scheme.is_affine) {
        const Tensor zeros = beside_codes(*coded, coded->zeros);
        inputs.push_back(constant(name + "_zero_point",
                                  pack_codes(zeros.shape(), zeros.values<std::int8_t>(), stored_bits(*coded))));
      }
      const bool has_groups = coded->scheme.granularity == Granularity::per_group;
      const int axis = has_groups ? 1 - coded->channel_axis : coded->scales.size() > 1 ? coded->channel_axis : -1;
      const NodeId dequantize = node("DequantizeLinear", name + "_dq", inputs, real, axis);
      if (has_groups) {
        graph_.node(dequantize).attributes.set("block_size", static_cast<std::int64_t>(coded->scheme.group_size));
      }
    } else {
      Node cast;
      cast.op_type = "Cast";
      cast.name = graph_.unique_name(name + "_cast");
      cast.inputs = {layer.weight};
      cast.outputs = {real};
      cast.attributes.set("to", std::int64_t{1});  // TensorProto.FLOAT
      graph_.add_node(std::move(cast));
    }
    store_codes(layer.weight, *coded);
    move_readers(layer.weight, real);
    return {};
  }

  void store_codes(ValueId id, const QuantTensor& coded) {
    graph::Value& value = graph_.value(id);
    const int bits = coded.scheme.weight_bits;
    value.constant =
        bits < 8 && bits != 4 ? pack_codes(coded.codes.shape(), unpack_codes(coded), stored_bits(coded)) : coded.codes;
    value.dtype = value.constant->dtype();
    value.quantized.reset();
  }

  // All readers of `from` but the node that makes `to` read `to`.
  void move_readers(ValueId from, ValueId to) {
    const NodeId maker = graph_.value(to).producer;
    const std::vector<NodeId> readers = graph_.value(from).consumers;
    for (NodeId reader : readers) {
      if (reader == maker) continue;
      for (std::size_t i = 0; i < graph_.node(reader).inputs.size(); ++i) {
        if (graph_.node(reader).inputs[i] == from) graph_.set_input(reader, i, to);
      }
    }
  }

  // Coded weights that no layer reads any more as such: kept as floats.
  Status write_other_coded() {
    for (std::size_t i = 0; i < graph_.value_capacity(); ++i) {
      graph::Value& value = graph_.value(ValueId{static_cast<std::uint32_t>(i)});
      if (value.is_removed || value.quantized == nullptr) continue;
      value.constant = dequantize(*value.quantized);
      value.quantized.reset();
    }
    return {};
  }

  Status write_bias(const Layer& layer) {
    const QuantTensor* coded = graph_.value(layer.weight).quantized.get();
    const graph::Value& input = graph_.value(layer.input);
    if (coded == nullptr || !layer.bias.is_valid() || !input.activation_quant) return {};
    if (!graph_.node(layer.node).scheme.is_integer_activation()) return {};
    const std::string name = graph_.value(layer.bias).name;
    const Tensor bias = *graph_.value(layer.bias).constant;
    std::vector<float> full(static_cast<std::size_t>(layer.channels));
    for (std::size_t c = 0; c < full.size(); ++c) full[c] = bias.values<float>()[bias.size() == 1 ? 0 : c];
    std::vector<float> scales(coded->scales.size());
    for (std::size_t c = 0; c < scales.size(); ++c) scales[c] = input.activation_quant->scale * coded->scales[c];
    QuantBias codes = quantize_bias(full, input.activation_quant->scale, coded->scales);
    // A step that underflowed makes 0 of any code; a stored scale is never 0.
    for (std::size_t c = 0; c < full.size(); ++c) {
      if (scales[scales.size() == 1 ? 0 : c] == 0.0f) codes.codes[c] = 0;
    }
    for (float& step : scales) step = step == 0.0f ? std::numeric_limits<float>::min() : step;
    const ValueId stored = constant(name + "_q", Tensor::of<std::int32_t>({layer.channels}, codes.codes));
    const ValueId scale = constant(
        name + "_scale", scales.size() == 1 ? Tensor::scalar(scales[0]) : Tensor::of<float>({layer.channels}, scales));
    const ValueId real = graph_.add_value(graph_.unique_name(name + "_dq"), DType::f32);
    node("DequantizeLinear", name + "_dq", {stored, scale}, real, scales.size() > 1 ? 0 : -1);
    graph_.set_input(layer.node, 2, real);
    return {};
  }

  void write_activation(ValueId id) {
    const ActivationQuant q = *graph_.value(id).activation_quant;
    graph_.value(id).activation_quant.reset();
    const std::string name = graph_.value(id).name;
    ValueId raw = id, real;
    if (graph_.is_output(id) && graph_.value(id).producer.is_valid()) {
      // The output keeps its name, so what produced it now writes another value.
      raw = graph_.add_value(graph_.unique_name(name + "_raw"), DType::f32);
      graph_.move_producer(id, raw);
      real = id;
    } else {
      real = graph_.add_value(graph_.unique_name(name + "_dq"), DType::f32);
    }
    const ValueId scale = constant(name + "_scale", Tensor::scalar(q.scale));
    const ValueId zero = constant(name + "_zp", Tensor::scalar(q.zero_point));
    const ValueId codes = graph_.add_value(graph_.unique_name(name + "_q"), DType::u8);
    const NodeId quantize = node("QuantizeLinear", name + "_q", {raw, scale, zero}, codes);
    node("DequantizeLinear", name + "_dq", {codes, scale, zero}, real);
    if (raw != id) return;
    const std::vector<NodeId> readers = graph_.value(id).consumers;
    for (NodeId reader : readers) {
      if (reader == quantize) continue;
      for (std::size_t i = 0; i < graph_.node(reader).inputs.size(); ++i) {
        if (graph_.node(reader).inputs[i] == id) graph_.set_input(reader, i, real);
      }
    }
  }

  Graph graph_;
};

int opset_for(const Graph& qdq) {
  int needed = qdq.opset;
  for (NodeId id : qdq.order()) {
    const Node& node = qdq.node(id);
    if (node.op != graph::Op::QuantizeLinear && node.op != graph::Op::DequantizeLinear) continue;
    const DType dtype = qdq.value(node.inputs[0]).dtype;
    const bool is_new = dtype == DType::i4 || dtype == DType::u4 || node.attributes.get_int("block_size", 0) > 0;
    needed = std::max(needed, is_new ? 21 : 13);
  }
  return needed;
}

}  // namespace

Result<Graph> to_qdq(const Graph& graph) {
  Graph plain = graph.clone();
  graph::widen_constants(plain);
  return QdqBuilder(std::move(plain)).run();
}

Result<std::string> onnx_qdq_of(const Graph& graph) {
  CTK_TRY(const Graph qdq, to_qdq(graph));
  graph::onnx::WriteOptions options;
  options.opset = opset_for(qdq);
  return graph::onnx::write_model_bytes(qdq, options);
}

}  // namespace ctk::exporter
