#include "graph/onnx/lift_qdq.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/layer.h"

namespace ctk::graph::onnx {
namespace {

ValueId input_of(const Node& node, std::size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : ValueId{};
}

const Tensor* constant_of(const Graph& graph, ValueId id) {
  return id.is_valid() && graph.value(id).constant ? &*graph.value(id).constant : nullptr;
}

bool is_blocked(const Node& node) {
  return node.attributes.get_int("block_size", 0) != 0;
}

// Weights alone may have scales below 0: the codes' longer side then lies above.
enum class Sign { positive, any };

bool is_scale(float scale, Sign sign) {
  return std::isfinite(scale) && (sign == Sign::any ? scale != 0.0f : scale > 0.0f);
}

// Float32 scales of a Q or DQ node, all finite and of the sign asked for; empty when they are anything else.
std::vector<float> scales_of(const Graph& graph, const Node& node, Sign sign = Sign::positive) {
  const Tensor* scale = constant_of(graph, input_of(node, 1));
  if (scale == nullptr || scale->dtype() != DType::f32 || scale->shape().size() > 1 || is_blocked(node)) return {};
  const auto values = scale->values<float>();
  const bool is_usable = std::all_of(values.begin(), values.end(), [sign](float s) { return is_scale(s, sign); });
  return is_usable ? std::vector<float>(values.begin(), values.end()) : std::vector<float>{};
}

// The one zero point of all channels; nullopt when it is computed or differs. 0 when absent.
std::optional<std::int64_t> zero_point_of(const Graph& graph, const Node& node) {
  const ValueId id = input_of(node, 2);
  if (!id.is_valid()) return 0;
  const Tensor* tensor = constant_of(graph, id);
  if (tensor == nullptr || tensor->size() == 0) return std::nullopt;
  const auto values = to_i64(*tensor);
  if (!values || std::any_of(values->begin(), values->end(), [&](std::int64_t v) { return v != values->front(); })) {
    return std::nullopt;
  }
  return values->front();
}

// ---- activations

// Scale and zero point of a per-tensor node on 8 bits, int8 moved up by 128; nullopt for any other.
std::optional<ActivationQuant> activation_quant_of(const Graph& graph, const Node& node) {
  const std::vector<float> scales = scales_of(graph, node);
  const auto zero = zero_point_of(graph, node);
  const ValueId zero_id = input_of(node, 2);
  const bool is_quantize = node.op == Op::QuantizeLinear;
  if (scales.size() != 1 || !zero) return std::nullopt;
  DType code = DType::u8;
  if (zero_id.is_valid()) {
    code = graph.value(zero_id).constant->dtype();
  } else if (is_quantize && node.attributes.get_int("output_dtype", 0) == 3) {
    code = DType::i8;
  } else if (is_quantize && node.attributes.get_int("output_dtype", 0) > 3) {
    return std::nullopt;
  }
  if (code != DType::u8 && code != DType::i8) return std::nullopt;
  return ActivationQuant{scales[0], static_cast<std::uint8_t>(*zero + (code == DType::i8 ? 128 : 0))};
}

// Whether `quantize` is followed by DequantizeLinear nodes of the same parameters only.
bool is_round_trip(const Graph& graph, NodeId quantize, const ActivationQuant& q) {
  const Node& node = graph.node(quantize);
  const ValueId codes = node.outputs[0];
  if (graph.is_output(codes) || graph.value(codes).consumers.empty()) return false;
  const auto zero = zero_point_of(graph, node);
  for (NodeId reader : graph.value(codes).consumers) {
    const Node& back = graph.node(reader);
    if (back.op != Op::DequantizeLinear || !back.domain.empty() || back.inputs[0] != codes) return false;
    // Without a zero point the type of the codes decides, so compare the numbers and not the types.
    const std::vector<float> scales = scales_of(graph, back);
    if (scales.size() != 1 || scales[0] != q.scale || zero_point_of(graph, back) != zero) return false;
  }
  return true;
}

// What all readers of `value` round it to: every reader is a QuantizeLinear of the same parameters that comes back.
std::optional<ActivationQuant> common_quant(const Graph& graph, ValueId value) {
  std::optional<ActivationQuant> common;
  for (NodeId reader : graph.value(value).consumers) {
    const Node& node = graph.node(reader);
    if (node.op != Op::QuantizeLinear || node.inputs[0] != value) return std::nullopt;
    const auto quant = activation_quant_of(graph, node);
    if (!quant || (common && *common != *quant) || !is_round_trip(graph, reader, *quant)) return std::nullopt;
    common = quant;
  }
  return common;
}

// Removes the pairs behind `value`, which their readers read from now on. 0 or the number of pairs.
int lift_activation(Graph& graph, ValueId value) {
  if (graph.is_output(value) || graph.value(value).is_constant() || graph.value(value).dtype != DType::f32) return 0;
  const auto quant = common_quant(graph, value);
  if (!quant || (graph.value(value).activation_quant && *graph.value(value).activation_quant != *quant)) return 0;
  std::vector<NodeId> backs;
  std::vector<ValueId> outputs;  // graph outputs among what comes back
  for (NodeId quantize : graph.value(value).consumers) {
    for (NodeId back : graph.value(graph.node(quantize).outputs[0]).consumers) {
      backs.push_back(back);
      const ValueId real = graph.node(back).outputs[0];
      if (graph.is_output(real)) outputs.push_back(real);
      const auto reads_by_name = [&](NodeId reader) {
        const auto& captured = graph.node(reader).captured;
        return std::find(captured.begin(), captured.end(), real) != captured.end();
      };
      const auto& readers = graph.value(real).consumers;
      if (std::any_of(readers.begin(), readers.end(), reads_by_name)) return 0;
    }
  }
  // A graph output keeps its name: what makes `value` makes it instead. That works for one output of a computed value.
  if (outputs.size() > 1 || (!outputs.empty() && !graph.value(value).producer.is_valid())) return 0;
  const ValueId home = outputs.empty() ? value : outputs[0];
  const std::vector<NodeId> quantizers = graph.value(value).consumers;
  for (NodeId back : backs) {
    const ValueId real = graph.node(back).outputs[0];
    graph.remove_node(back);
    graph.replace_uses(real, home);
  }
  for (NodeId quantize : quantizers) graph.remove_node(quantize);
  if (home != value) graph.move_producer(value, home);
  graph.value(home).activation_quant = quant;
  return static_cast<int>(quantizers.size());
}

// ---- constants

std::optional<std::size_t> axis_of(const Node& node, const Shape& shape) {
  std::int64_t axis = node.attributes.get_int("axis", 1);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis);
}

// DequantizeLinear of int32 codes (a bias): computed here, as the float it stands for.
bool lift_bias(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Tensor* codes = constant_of(graph, input_of(node, 0));
  const std::vector<float> scales = scales_of(graph, node);
  if (codes == nullptr || codes->dtype() != DType::i32 || scales.empty() || zero_point_of(graph, node) != 0)
    return false;
  std::size_t inner = codes->size(), extent = 1;  // one scale: all elements
  if (scales.size() > 1) {
    const auto axis = axis_of(node, codes->shape());
    if (!axis || codes->shape()[*axis] != static_cast<std::int64_t>(scales.size())) return false;
    extent = scales.size();
    inner = 1;
    for (std::size_t d = *axis + 1; d < codes->shape().size(); ++d) {
      inner *= static_cast<std::size_t>(codes->shape()[d]);
    }
  }
  auto real = Tensor::zeros(DType::f32, codes->shape());
  if (!real) return false;
  auto out = real->mutable_values<float>();
  const auto in = codes->values<std::int32_t>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(in[i]) * scales[i / inner % extent];
  const ValueId output = node.outputs[0];
  graph.remove_node(id);
  graph.value(output).constant = std::move(*real);
  return true;
}

// Zero points that differ, in the order of the scales' note and moved into the signed range; nullopt when they are
// none.
std::optional<std::vector<std::int8_t>> zeros_of(const Graph& graph, const Node& node, const QuantTensor& note,
                                                 std::optional<std::size_t> channel_axis) {
  const Tensor* tensor = constant_of(graph, input_of(node, 2));
  if (tensor == nullptr || tensor->size() != note.scales.size()) return std::nullopt;
  const auto values = to_i64(*tensor);
  if (!values) return std::nullopt;
  const bool is_unsigned = tensor->dtype() == DType::u8 || tensor->dtype() == DType::u4;
  const std::int64_t offset = is_unsigned ? 1 << (bits_of(tensor->dtype()) - 1) : 0;
  std::vector<std::int8_t> zeros(values->size());
  const bool is_turned = is_blocked(node) && channel_axis && *channel_axis == 1;
  const std::size_t channels = is_turned ? static_cast<std::size_t>(tensor->shape()[1]) : 1;
  const std::size_t groups = zeros.size() / channels;
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    const std::size_t place = is_turned ? i % channels * groups + i / channels : i;
    zeros[place] = static_cast<std::int8_t>((*values)[i] - offset);
  }
  return zeros;
}

template <class T>
std::optional<Tensor> moved_bytes(const Tensor& codes, std::int64_t offset, std::int64_t low, std::int64_t high) {
  Tensor moved = Tensor::zeros(DType::i8, codes.shape()).value();
  std::int8_t* out = moved.mutable_values<std::int8_t>().data();
  std::int64_t least = high, most = low;
  for (const T code : codes.values<T>()) {
    const std::int64_t value = code - offset;
    least = std::min(least, value), most = std::max(most, value);
    *out++ = static_cast<std::int8_t>(value);
  }
  return least < low || most > high ? std::nullopt : std::optional(std::move(moved));
}

// Codes less `offset` as signed ones of the same width, without a copy where they are that; nullopt when one is not
// within [low, high].
std::optional<Tensor> moved_codes(const Tensor& codes, std::int64_t offset, std::int64_t low, std::int64_t high) {
  if (codes.dtype() == DType::u8) return moved_bytes<std::uint8_t>(codes, offset, low, high);
  if (codes.dtype() == DType::i8) {
    if (offset != 0) return moved_bytes<std::int8_t>(codes, offset, low, high);
    std::int8_t least = 127, most = -128;
    for (const std::int8_t code : codes.values<std::int8_t>())
      least = std::min(least, code), most = std::max(most, code);
    return least < low || most > high ? std::nullopt : std::optional(codes);
  }
  const std::vector<std::int64_t> values = to_i64(codes).value();
  std::vector<std::int8_t> out(values.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t code = values[i] - offset;
    if (code < low || code > high) return std::nullopt;
    out[i] = static_cast<std::int8_t>(code);
  }
  return pack_codes(codes.shape(), out, bits_of(codes.dtype()));
}

// Codes of any width moved into the signed range.
Tensor signed_codes(const Tensor& codes) {
  const std::int64_t half = std::int64_t{1} << (bits_of(codes.dtype()) - 1);
  const bool is_unsigned = codes.dtype() == DType::u8 || codes.dtype() == DType::u4;
  return moved_codes(codes, is_unsigned ? half : 0, -half, half - 1).value();
}

// Codes minus their zero point; nullopt when they do not fit the symmetric range of their width.
std::optional<Tensor> symmetric_codes(const Tensor& codes, std::int64_t zero) {
  const int bits = bits_of(codes.dtype());
  return moved_codes(codes, zero, bits == 4 ? -8 : -127, bits == 4 ? 7 : 127);
}

// Whether every reader of the weight is a layer whose channels lie as the scales do; sets axis and groups of the note.
bool fits_layers(Graph& graph, ValueId weight, std::optional<std::size_t> scale_axis, QuantTensor& note) {
  const std::vector<NodeId> readers = graph.value(weight).consumers;
  graph.value(weight).quantized = std::make_shared<const QuantTensor>(note);  // layer_of looks for a constant
  std::optional<Layer> layer;
  for (NodeId reader : readers) {
    const auto found = layer_of(graph, reader);
    if (!found || found->weight != weight || (layer && !can_share_codes(*layer, *found))) {
      layer.reset();
      break;
    }
    layer = found;
  }
  graph.value(weight).quantized.reset();
  if (!layer) return false;
  if (scale_axis && *scale_axis != static_cast<std::size_t>(layer->channel_axis)) return false;
  note.channel_axis = layer->channel_axis;
  note.group_count = layer->group_count;
  if (scale_axis && note.scheme.granularity == Granularity::per_channel) {
    // Scales along out/group serve every group alike.
    const std::size_t count = note.scales.size();
    if (static_cast<std::int64_t>(count) * note.group_count != layer->channels) return false;
    for (int group = 1; group < note.group_count; ++group) {
      for (std::size_t i = 0; i < count; ++i) note.scales.push_back(note.scales[i]);
    }
  }
  return true;
}

// Scales of a blocked matrix as [channels, groups], channels on the dimension that is not cut into blocks; empty when
// they are none of ours.
std::vector<float> group_scales_of(const Graph& graph, const Node& node, const Shape& codes, QuantScheme& scheme,
                                   std::optional<std::size_t>& channel_axis) {
  const Tensor* scale = constant_of(graph, input_of(node, 1));
  const auto axis = axis_of(node, codes);
  const std::int64_t block = node.attributes.get_int("block_size", 0);
  if (scale == nullptr || scale->dtype() != DType::f32 || codes.size() != 2 || !axis || block > 1 << 20) return {};
  channel_axis = 1 - *axis;
  scheme.granularity = Granularity::per_group;
  scheme.group_size = static_cast<int>(block);
  const std::size_t groups = groups_of(codes, static_cast<int>(*channel_axis), scheme);
  const auto channels = static_cast<std::size_t>(codes[*channel_axis]);
  if (scale->shape().size() != 2 || scale->shape()[*axis] != static_cast<std::int64_t>(groups) ||
      scale->shape()[*channel_axis] != codes[*channel_axis])
    return {};
  const auto values = scale->values<float>();
  std::vector<float> scales(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_scale(values[i], Sign::any)) return {};
    if (*channel_axis == 1) scales[i % channels * groups + i / channels] = values[i];
  }
  return scales;
}

bool lift_weight(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId source = input_of(node, 0), output = node.outputs[0];
  const Tensor* codes = constant_of(graph, source);
  if (codes == nullptr || graph.is_output(output) || graph.value(output).consumers.empty()) return false;
  const bool is_narrow = codes->dtype() == DType::i4 || codes->dtype() == DType::u4;
  if (!is_narrow && codes->dtype() != DType::i8 && codes->dtype() != DType::u8) return false;
  QuantTensor note;
  note.method = "given";
  note.scheme = {is_narrow ? 4 : 8, 16, Granularity::per_tensor, 0};
  std::optional<std::size_t> axis;
  note.scales = is_blocked(node) ? group_scales_of(graph, node, codes->shape(), note.scheme, axis)
                                 : scales_of(graph, node, Sign::any);
  if (note.scales.empty() || codes->size() == 0) return false;
  if (!is_blocked(node) && (note.scales.size() > 1 || constant_of(graph, input_of(node, 1))->shape().size() == 1)) {
    axis = axis_of(node, codes->shape());
    const bool is_tensor_wide = note.scales.size() == 1;  // [1] is also written for one scale of the whole tensor
    if (!is_tensor_wide && (!axis || codes->shape()[*axis] != static_cast<std::int64_t>(note.scales.size())))
      return false;
    if (is_tensor_wide) axis.reset();
  }
  std::optional<Tensor> moved;
  if (const auto zero = zero_point_of(graph, node)) moved = symmetric_codes(*codes, *zero);
  if (!moved) {
    auto zeros = zeros_of(graph, node, note, axis);
    if (!zeros) return false;
    note.zeros = std::move(*zeros);
    note.scheme.is_affine = true;
    moved = signed_codes(*codes);
  }
  if (axis && !is_blocked(node)) note.scheme.granularity = Granularity::per_channel;
  note.codes = std::move(*moved);
  if (!fits_layers(graph, output, axis, note)) return false;

  // The weight keeps the name its codes have in the file, unless somebody else reads the codes.
  const bool is_sole = graph.value(source).consumers.size() == 1 && !graph.is_output(source);
  graph.remove_node(id);
  ValueId home = output;
  if (is_sole) {
    home = source;
    graph.replace_uses(output, source);
    graph.value(source).constant.reset();
    graph.value(source).dtype = DType::f32;
  }
  graph.value(home).quantized = std::make_shared<const QuantTensor>(std::move(note));
  return true;
}

void set_schemes(Graph& graph) {
  for (const Layer& layer : layers_of(graph)) {
    const auto weight = graph.value(layer.weight).quantized;
    if (weight == nullptr || !weight->scheme.is_integer_weight()) continue;
    QuantScheme scheme = weight->scheme;
    const bool is_plain = !scheme.is_affine && std::ranges::all_of(weight->scales, [](float s) { return s > 0.0f; });
    scheme.activation_bits = graph.value(layer.input).activation_quant && is_plain ? 8 : 16;
    graph.node(layer.node).scheme = scheme;
    auto copy = std::make_shared<QuantTensor>(*weight);
    copy->scheme = scheme;
    graph.value(layer.weight).quantized = std::move(copy);
  }
}

}  // namespace

Result<int> lift_quantization(Graph& graph) {
  int lifted = 0;
  const std::vector<NodeId> order = graph.order();
  const auto is_dequantize = [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.is_removed && node.op == Op::DequantizeLinear && node.outputs.size() == 1;
  };
  // Biases first: a layer is recognized only once its bias is a float constant.
  for (NodeId id : order) lifted += is_dequantize(id) && lift_bias(graph, id) ? 1 : 0;
  for (NodeId id : order) lifted += is_dequantize(id) && lift_weight(graph, id) ? 1 : 0;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.is_removed || node.op != Op::QuantizeLinear || !input_of(node, 0).is_valid()) continue;
    lifted += lift_activation(graph, node.inputs[0]);
  }
  if (lifted == 0) return 0;
  set_schemes(graph);
  graph.remove_dead_values();
  CTK_CHECK(verify(graph));
  return lifted;
}

}  // namespace ctk::graph::onnx
