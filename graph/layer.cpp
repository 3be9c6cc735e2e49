#include "graph/layer.h"
#include "graph/floats.h"

#include <string>

namespace ctk::graph {

using ctk::to_string;  // of a Shape; graph.h has one of its own for declared shapes

namespace {

struct Weight {
  ValueId id;
  Shape shape;
};

bool refuse(std::string* why, std::string reason) {
  if (why != nullptr) *why = std::move(reason);
  return false;
}

ValueId input_of(const Node& node, std::size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : ValueId{};
}

bool is_given_constant(const Graph& graph, ValueId id) {
  return id.is_valid() && graph.value(id).is_constant();
}

Shape constant_shape(const Value& value) {
  return value.quantized != nullptr ? value.quantized->codes.shape() : value.constant->shape();
}

// Input 1 as a weight of at least `rank` dimensions (exactly, when `is_exact`).
bool read_weight(const Graph& graph, const Node& node, std::size_t rank, bool is_exact, Weight& weight,
                 std::string* why) {
  weight.id = input_of(node, 1);
  if (!is_given_constant(graph, weight.id)) return refuse(why, "its weight is not a constant");
  if (is_given_constant(graph, input_of(node, 0))) return refuse(why, "its input is a constant too");
  const Value& value = graph.value(weight.id);
  if (value.quantized == nullptr && value.constant->dtype() != DType::f32 && !is_narrow(value)) {
    return refuse(why, "weight \"" + value.name + "\" is not f32 but " + std::string(name_of(value.constant->dtype())));
  }
  weight.shape = constant_shape(value);
  if (weight.shape.size() < rank || (is_exact && weight.shape.size() != rank)) {
    return refuse(why, "weight \"" + value.name + "\" needs " + (is_exact ? "" : "at least ") + std::to_string(rank) +
                           " dimensions, found shape " + to_string(weight.shape));
  }
  const auto count = element_count(weight.shape);
  if (!count || *count == 0) return refuse(why, "weight \"" + value.name + "\" holds no elements");
  return true;
}

std::int64_t product_from(const Shape& shape, std::size_t first) {
  return static_cast<std::int64_t>(elements(Shape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end())));
}

bool read_conv(const Graph& graph, const Node& node, Layer& layer, std::string* why) {
  Weight weight;
  if (!read_weight(graph, node, 3, false, weight, why)) return false;
  const std::int64_t group = node.attributes.get_int("group", 1);
  const bool is_transposed = node.op == Op::ConvTranspose;
  if (group < 1 || weight.shape[0] % group != 0) {
    return refuse(why, "group " + std::to_string(group) + " does not divide weight shape " + to_string(weight.shape));
  }
  layer.weight = weight.id;
  if (is_transposed) {
    // [in, out / group, kernel...]: each output element sums in / group * kernel products.
    layer.channel_axis = 1;
    layer.group_count = static_cast<int>(group);
    layer.channels = group * weight.shape[1];
    layer.reduction = weight.shape[0] / group * product_from(weight.shape, 2);
  } else {
    layer.channels = weight.shape[0];
    layer.reduction = product_from(weight.shape, 1);
    layer.is_depthwise = group > 1 && weight.shape[1] == 1;
  }
  return true;
}

bool read_gemm(const Graph& graph, const Node& node, Layer& layer, std::string* why) {
  Weight weight;
  if (!read_weight(graph, node, 2, true, weight, why)) return false;
  if (node.attributes.get_int("transA", 0) != 0) return refuse(why, "transA = 1: its rows are not samples");
  layer.weight = weight.id;
  layer.channel_axis = node.attributes.get_int("transB", 0) != 0 ? 0 : 1;
  layer.channels = weight.shape[static_cast<std::size_t>(layer.channel_axis)];
  layer.reduction = weight.shape[static_cast<std::size_t>(1 - layer.channel_axis)];
  return true;
}

bool read_matmul(const Graph& graph, const Node& node, Layer& layer, std::string* why) {
  Weight weight;
  if (!read_weight(graph, node, 2, true, weight, why)) return false;
  layer.weight = weight.id;
  layer.channel_axis = 1;
  layer.channels = weight.shape[1];
  layer.reduction = weight.shape[0];
  return true;
}

// A bias is one constant number per channel; Gemm also broadcasts [], [1], [1,1] and [1,N].
bool read_bias(const Graph& graph, const Node& node, Layer& layer, std::string* why) {
  const ValueId bias = node.op == Op::MatMul ? ValueId{} : input_of(node, 2);
  if (!bias.is_valid()) return true;
  const Value& value = graph.value(bias);
  if (!value.constant.has_value()) return refuse(why, "bias \"" + value.name + "\" is not a constant");
  if (value.constant->dtype() != DType::f32) return refuse(why, "bias \"" + value.name + "\" is not f32");
  const Shape& shape = value.constant->shape();
  bool fits = shape == Shape{layer.channels};
  if (node.op == Op::Gemm) {
    const bool has_one_row = shape.size() < 2 || (shape.size() == 2 && shape[0] == 1);
    fits = has_one_row && (shape.empty() || shape.back() == 1 || shape.back() == layer.channels);
  }
  if (fits) {
    layer.bias = bias;
    return true;
  }
  return refuse(why, "bias \"" + value.name + "\" of shape " + to_string(shape) + " is not one number for each of " +
                         std::to_string(layer.channels) + " channels");
}

// The layer as this node alone tells it, whoever else reads the weight.
bool read_layer(const Graph& graph, NodeId id, Layer& layer, std::string* why) {
  const Node& node = graph.node(id);
  if (node.is_removed) return refuse(why, "it is removed");
  bool is_layer = false;
  switch (node.op) {
    case Op::Conv:
    case Op::ConvTranspose:
      is_layer = read_conv(graph, node, layer, why);
      break;
    case Op::Gemm:
      is_layer = read_gemm(graph, node, layer, why);
      break;
    case Op::MatMul:
      is_layer = read_matmul(graph, node, layer, why);
      break;
    default:
      return refuse(why, node.op_type + " has no weight to quantize");
  }
  if (!is_layer) return false;
  layer.node = id;
  layer.input = input_of(node, 0);
  return read_bias(graph, node, layer, why);
}

}  // namespace

std::optional<Layer> layer_of(const Graph& graph, NodeId node, std::string* why) {
  Layer layer;
  if (!read_layer(graph, node, layer, why)) return std::nullopt;
  return layer;
}

bool can_share_codes(const Layer& a, const Layer& b) {
  return a.weight == b.weight && a.channel_axis == b.channel_axis && a.group_count == b.group_count;
}

std::vector<NodeId> other_readers(const Graph& graph, ValueId weight) {
  std::vector<NodeId> others;
  for (NodeId reader : graph.value(weight).consumers) {
    const auto layer = layer_of(graph, reader);
    if (!layer || layer->weight != weight) others.push_back(reader);
  }
  return others;
}

std::vector<Layer> layers_of(const Graph& graph) {
  std::vector<Layer> layers;
  for (NodeId id : graph.order()) {
    if (auto layer = layer_of(graph, id)) layers.push_back(*layer);
  }
  return layers;
}

}  // namespace ctk::graph
