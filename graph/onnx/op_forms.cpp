#include "graph/onnx/op_forms.h"

#include <algorithm>
#include <limits>

#include "core/printable.h"

namespace ctk::graph::onnx {

Error FormContext::error(NodeId id, const std::string& text) const {
  return input_error(printable(graph.address(id)) + " (" + graph.node(id).op_type + "): " + text);
}

Error FormContext::needs(NodeId id, int since, const std::string& what) const {
  return error(id, what + " needs opset " + std::to_string(since) + ", the model is to be written for opset " +
                       std::to_string(opset) + ". Ask for opset " + std::to_string(since) + " or newer.");
}

std::string FormContext::new_name(const std::string& wish) const {
  std::string name = graph.unique_name(wish);
  for (int suffix = 2; taken != nullptr && taken->contains(name); ++suffix) {
    name = graph.unique_name(wish + "_" + std::to_string(suffix));
  }
  return name;
}

ValueId FormContext::add_ints(NodeId id, const std::string& what, const std::vector<std::int64_t>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return graph.add_constant(new_name(graph.address(id) + "_" + what), Tensor::of<std::int64_t>({count}, values));
}

ValueId FormContext::input(NodeId id, std::size_t index) const {
  const auto& inputs = graph.node(id).inputs;
  return index < inputs.size() ? inputs[index] : ValueId{};
}

std::optional<std::vector<std::int64_t>> FormContext::known_ints(NodeId id, std::size_t index) const {
  const ValueId value = input(id, index);
  if (!value.is_valid() || !graph.value(value).constant) return std::nullopt;
  const Tensor& tensor = *graph.value(value).constant;
  if (tensor.dtype() != DType::i64 && tensor.dtype() != DType::i32) return std::nullopt;
  auto values = to_i64(tensor);
  if (!values) return std::nullopt;
  return std::move(*values);
}

std::optional<float> FormContext::known_scalar(NodeId id, std::size_t index) const {
  const ValueId value = input(id, index);
  if (!value.is_valid() || !graph.value(value).constant || graph.value(value).constant->size() != 1)
    return std::nullopt;
  const auto floats = to_f32(*graph.value(value).constant);
  if (!floats) return std::nullopt;
  return floats->values<float>()[0];
}

void FormContext::drop_inputs_from(NodeId id, std::size_t first) {
  for (std::size_t i = first; i < graph.node(id).inputs.size(); ++i) {
    const ValueId value = graph.node(id).inputs[i];
    if (!value.is_valid()) continue;
    if (graph.value(value).is_constant()) orphans.insert(value);
    graph.set_input(id, i, {});
  }
  auto& inputs = graph.node(id).inputs;
  if (inputs.size() > first) inputs.resize(first);
}

std::optional<std::int64_t> FormContext::known_rank(NodeId id) const {
  ValueId value = input(id, 0);
  for (int step = 0; step < 64 && value.is_valid(); ++step) {
    const Value& held = graph.value(value);
    if (held.constant) return static_cast<std::int64_t>(held.constant->shape().size());
    if (held.shape) return static_cast<std::int64_t>(held.shape->size());
    if (!held.producer.is_valid()) return std::nullopt;
    const Node& producer = graph.node(held.producer);
    switch (producer.op) {
      case Op::Gemm:
      case Op::Flatten:
        return 2;
      case Op::Reshape: {
        const auto shape = known_ints(held.producer, 1);
        if (!shape) return std::nullopt;
        return static_cast<std::int64_t>(shape->size());
      }
      case Op::AveragePool:
      case Op::BatchNormalization:
      case Op::Cast:
      case Op::Clip:
      case Op::Conv:
      case Op::Dropout:
      case Op::Elu:
      case Op::GlobalAveragePool:
      case Op::Identity:
      case Op::LeakyRelu:
      case Op::MaxPool:
      case Op::Pad:
      case Op::Relu:
      case Op::Sigmoid:
      case Op::Slice:
      case Op::Softmax:
      case Op::Tanh:
      case Op::Transpose:
        value = producer.inputs.empty() ? ValueId{} : producer.inputs[0];
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {

// First opset in which the node's axes are an input.
int axes_input_since(const Node& node) {
  return node.op == Op::ReduceMean ? 18 : 13;
}

// A scalar constant of the node's own float type.
Result<ValueId> add_scalar(FormContext& c, NodeId id, const std::string& what, float number) {
  const ValueId data = c.input(id, 0);
  const DType wanted = data.is_valid() ? c.graph.value(data).dtype : DType::f32;
  CTK_TRY(Tensor tensor, cast(Tensor::scalar<float>(number), is_float(wanted) ? wanted : DType::f32));
  return c.graph.add_constant(c.new_name(c.graph.address(id) + "_" + what), std::move(tensor));
}

Status expect_inputs(const FormContext& c, NodeId id, std::size_t most) {
  const std::size_t found = c.graph.node(id).inputs.size();
  if (found <= most) return {};
  return c.error(id, "expected at most " + std::to_string(most) + " inputs at opset " + std::to_string(c.opset) +
                         ", found " + std::to_string(found));
}

bool is_used(const Graph& graph, ValueId id) {
  return !graph.value(id).consumers.empty() || graph.is_output(id);
}

}  // namespace

Status normalize_axes(FormContext& c, NodeId id) {
  if (c.opset >= axes_input_since(c.graph.node(id))) return {};
  CTK_CHECK(expect_inputs(c, id, 1));
  const std::vector<std::int64_t> axes = c.graph.node(id).attributes.get_ints("axes");
  c.graph.node(id).attributes.erase("axes");
  // No axes, and an empty list, mean all of them in every old form.
  if (!axes.empty()) c.graph.set_input(id, 1, c.add_ints(id, "axes", axes));
  return {};
}

Status lower_axes(FormContext& c, NodeId id) {
  const int since = axes_input_since(c.graph.node(id));
  if (c.opset >= since) return {};
  if (c.input(id, 1).is_valid()) {
    auto axes = c.known_ints(id, 1);
    if (!axes) return c.needs(id, since, "computed axes");
    const bool has_noop = c.graph.node(id).attributes.get_int("noop_with_empty_axes", 0) != 0;
    if (axes->empty() && has_noop) return c.needs(id, since, "noop_with_empty_axes");
    c.graph.node(id).attributes.erase("noop_with_empty_axes");
    if (c.opset < 11) {
      // Axes counted from the end came with opset 11. Unsqueeze counts in its
      // output.
      auto rank = c.known_rank(id);
      if (rank && c.graph.node(id).op == Op::Unsqueeze) *rank += static_cast<std::int64_t>(axes->size());
      for (std::int64_t& axis : *axes) {
        if (axis >= 0) continue;
        if (!rank) return c.needs(id, 11, "a negative axis of a tensor of unknown rank");
        axis += *rank;
      }
    }
    if (!axes->empty()) c.graph.node(id).attributes.set("axes", *axes);
  }
  c.drop_inputs_from(id, 1);
  return {};
}

Status normalize_batch_normalization(FormContext& c, NodeId id) {
  Node& node = c.graph.node(id);
  if (node.attributes.get_int("spatial", 1) != 1) {
    return c.error(id, "spatial=0 is not supported. Expected statistics per channel.");
  }
  node.attributes.erase("spatial");
  if (node.attributes.get_int("training_mode", 0) != 0) {
    return c.error(id,
                   "training_mode=1 normalizes by statistics of the batch. "
                   "Export the model for inference.");
  }
  bool has_extra = false;
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].is_valid()) continue;
    Value& extra = c.graph.value(node.outputs[i]);
    if (is_used(c.graph, node.outputs[i])) {
      return c.error(id, "training output \"" + extra.name + "\" is used. Export the model for inference.");
    }
    extra.producer = {};  // becomes a dead value, which the reader removes
    has_extra = true;
  }
  if (has_extra) {
    // Before opset 14 their presence alone meant training mode, which exporters wrote by accident.
    c.graph.reader_notes.push_back(printable(c.graph.address(id)) +
                                   " (BatchNormalization): unused training outputs were " +
                                   "dropped; it uses its stored mean and variance");
  }
  node.outputs.resize(std::min<std::size_t>(node.outputs.size(), 1));
  return {};
}

Status normalize_clip(FormContext& c, NodeId id) {
  if (c.opset >= 11) return {};
  CTK_CHECK(expect_inputs(c, id, 1));
  const char* const bounds[] = {"min", "max"};
  for (std::size_t i = 0; i < 2; ++i) {
    if (c.graph.node(id).attributes.find(bounds[i]) == nullptr) continue;
    const float bound = c.graph.node(id).attributes.get_float(bounds[i], 0.0f);
    c.graph.node(id).attributes.erase(bounds[i]);
    CTK_TRY(const ValueId value, add_scalar(c, id, bounds[i], bound));
    c.graph.set_input(id, i + 1, value);
  }
  return {};
}

Status lower_clip(FormContext& c, NodeId id) {
  if (c.opset >= 11) return {};
  const char* const bounds[] = {"min", "max"};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.input(id, i + 1).is_valid()) continue;
    const auto bound = c.known_scalar(id, i + 1);
    if (!bound) return c.needs(id, 11, "a computed bound");
    c.graph.node(id).attributes.set(bounds[i], *bound);
  }
  c.drop_inputs_from(id, 1);
  return {};
}

Status normalize_dropout(FormContext& c, NodeId id) {
  if (c.opset >= 12) return {};
  CTK_CHECK(expect_inputs(c, id, 1));
  Node& node = c.graph.node(id);
  if (c.opset < 10 && node.outputs.size() > 1 && node.outputs[1].is_valid() && is_used(c.graph, node.outputs[1])) {
    return c.error(id,
                   "the mask is used, and before opset 10 it is a float. "
                   "Export the model for opset 10 or newer.");
  }
  if (node.attributes.find("ratio") == nullptr) return {};
  const float ratio = node.attributes.get_float("ratio", 0.5f);
  node.attributes.erase("ratio");
  const ValueId value = c.graph.add_constant(c.new_name(c.graph.address(id) + "_ratio"), Tensor::scalar<float>(ratio));
  c.graph.set_input(id, 1, value);
  return {};
}

Status lower_dropout(FormContext& c, NodeId id) {
  if (c.opset >= 12) return {};
  const ValueId mode = c.input(id, 2);
  if (mode.is_valid() && c.known_scalar(id, 2).value_or(1.0f) != 0.0f) return c.needs(id, 12, "training_mode");
  if (c.input(id, 1).is_valid()) {
    const auto ratio = c.known_scalar(id, 1);
    if (!ratio) return c.needs(id, 12, "a computed ratio");
    c.graph.node(id).attributes.set("ratio", *ratio);
  }
  c.graph.node(id).attributes.erase("seed");  // of use in training only
  c.drop_inputs_from(id, 1);
  return {};
}

Status lower_attention(FormContext& c, NodeId id) {
  const bool counts_keys = c.input(id, 6).is_valid();
  return counts_keys && c.opset < 24 ? c.needs(id, 24, "Attention with nonpad_kv_seqlen") : Status();
}

Status lower_gemm(FormContext& c, NodeId id) {
  if (c.opset >= 11 || c.input(id, 2).is_valid()) return {};
  // Before opset 11 the addend is required; a zero broadcasts.
  CTK_TRY(const ValueId zero, add_scalar(c, id, "C", 0.0f));
  c.graph.set_input(id, 2, zero);
  return {};
}

Status lower_quantize(FormContext& c, NodeId id) {
  Node& node = c.graph.node(id);
  const bool is_quantize = node.op == Op::QuantizeLinear;
  const ValueId typed = c.input(id, is_quantize ? 2 : 0);
  DType code = typed.is_valid() ? c.graph.value(typed).dtype : DType::u8;
  if (is_quantize && c.opset < 21) {
    const std::int64_t output = node.attributes.get_int("output_dtype", 0);
    const bool is_redundant = typed.is_valid() || output == 0 || output == 2;  // 2: UINT8, what silence means
    if (!is_redundant) return c.needs(id, 21, "output_dtype without a zero point");
    node.attributes.erase("output_dtype");
  }
  if (c.opset < 21 && (bits_of(code) == 4 || bits_of(code) == 16)) {
    return c.needs(id, 21, "the code type " + std::string(name_of(code)));
  }
  const ValueId scale = c.input(id, 1);
  if (!scale.is_valid()) return {};
  const Value& held = c.graph.value(scale);
  if (c.opset < 19 && held.dtype != DType::f32)
    return c.needs(id, 19, "a scale of " + std::string(name_of(held.dtype)));
  if (c.opset >= 13) return {};
  const bool is_scalar = held.constant ? held.constant->shape().empty() : held.shape && held.shape->empty();
  if (!is_scalar) return c.needs(id, 13, "a scale per channel");
  node.attributes.erase("axis");
  return {};
}

}  // namespace ctk::graph::onnx
