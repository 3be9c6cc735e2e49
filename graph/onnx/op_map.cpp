#include "graph/onnx/op_map.h"

#include <algorithm>
#include <array>

#include "graph/onnx/read.h"

namespace ctk::graph::onnx {
namespace {

using enum AttributeKind;

// Versions and attributes as the ONNX operator specification gives them for
// opsets 9 to 24.
std::vector<OpRow> make_rows() {
  return {
      {"Abs"},
      {"Add"},
      {"Attention",
       23,
       {{"is_causal", integer},
        {"kv_num_heads", integer},
        {"q_num_heads", integer},
        {"qk_matmul_output_mode", integer},
        {"scale", real},
        {"softcap", real},
        {"softmax_precision", integer}},
       nullptr,
       lower_attention},
      {"AveragePool",
       9,
       {{"auto_pad", text},
        {"ceil_mode", integer, 10, 24, "0"},
        {"count_include_pad", integer},
        {"dilations", integers, 19, 24, "1"},
        {"kernel_shape", integers},
        {"pads", integers},
        {"strides", integers}},
       nullptr,
       lower_window},
      {"BatchNormalization",
       9,
       {{"epsilon", real}, {"momentum", real}, {"spatial", integer}, {"training_mode", integer, 14, 24, "0"}},
       normalize_batch_normalization},
      {"Cast", 9, {{"round_mode", text, 24, 24, "up"}, {"saturate", integer, 19, 24, "1"}, {"to", integer}}},
      {"Clip", 9, {{"max", real, 9, 10}, {"min", real, 9, 10}}, normalize_clip, lower_clip},
      {"Concat", 9, {{"axis", integer}}},
      {"Constant",
       9,
       {{"sparse_value", other, 11},
        {"value", tensor},
        {"value_float", real, 12},
        {"value_floats", reals, 12},
        {"value_int", integer, 12},
        {"value_ints", integers, 12},
        {"value_string", text, 12},
        {"value_strings", texts, 12}}},
      {"ConstantOfShape", 9, {{"value", tensor}}},
      {"Conv",
       9,
       {{"auto_pad", text},
        {"dilations", integers},
        {"group", integer},
        {"kernel_shape", integers},
        {"pads", integers},
        {"strides", integers}},
       nullptr,
       lower_window},
      {"ConvTranspose",
       9,
       {{"auto_pad", text},
        {"dilations", integers},
        {"group", integer},
        {"kernel_shape", integers},
        {"output_padding", integers},
        {"output_shape", integers},
        {"pads", integers},
        {"strides", integers}},
       nullptr,
       lower_conv_transpose},
      {"DequantizeLinear",
       10,
       {{"axis", integer, 13}, {"block_size", integer, 21, 24, "0"}, {"output_dtype", integer, 23, 24, "0"}},
       nullptr,
       lower_quantize},
      {"Div"},
      {"Dropout", 9, {{"ratio", real, 9, 11}, {"seed", integer, 12}}, normalize_dropout, lower_dropout},
      {"Elu", 9, {{"alpha", real}}},
      {"Equal"},
      {"Erf"},
      {"Exp"},
      {"Expand"},
      {"Flatten", 9, {{"axis", integer}}},
      {"Gather", 9, {{"axis", integer}}},
      {"Gelu", 20, {{"approximate", text}}},
      {"Gemm", 9, {{"alpha", real}, {"beta", real}, {"transA", integer}, {"transB", integer}}, nullptr, lower_gemm},
      {"GlobalAveragePool"},
      {"HardSigmoid", 9, {{"alpha", real}, {"beta", real}}},
      {"HardSwish", 14},
      {"Identity"},
      {"LayerNormalization", 17, {{"axis", integer}, {"epsilon", real}, {"stash_type", integer}}},
      {"LeakyRelu", 9, {{"alpha", real}}},
      {"MatMul"},
      {"Max"},
      {"MaxPool",
       9,
       {{"auto_pad", text},
        {"ceil_mode", integer, 10, 24, "0"},
        {"dilations", integers, 10, 24, "1"},
        {"kernel_shape", integers},
        {"pads", integers},
        {"storage_order", integer},
        {"strides", integers}},
       nullptr,
       lower_window},
      {"Min"},
      {"Mul"},
      {"Neg"},
      {"PRelu"},
      {"Pad", 9, {{"mode", text}, {"pads", integers, 9, 10}, {"value", real, 9, 10}}, normalize_pad, lower_pad},
      {"Pow"},
      {"QuantizeLinear",
       10,
       {{"axis", integer, 13},
        {"block_size", integer, 21, 24, "0"},
        {"output_dtype", integer, 21, 24, "0"},
        {"precision", integer, 23, 24, "0"},
        {"saturate", integer, 19, 24, "1"}},
       nullptr,
       lower_quantize},
      {"RMSNormalization", 23, {{"axis", integer}, {"epsilon", real}, {"stash_type", integer}}},
      {"Range", 11},
      {"ReduceMean",
       9,
       {{"axes", integers, 9, 17}, {"keepdims", integer}, {"noop_with_empty_axes", integer, 18, 24, "0"}},
       normalize_axes,
       lower_axes},
      {"ReduceSum",
       9,
       {{"axes", integers, 9, 12}, {"keepdims", integer}, {"noop_with_empty_axes", integer, 13, 24, "0"}},
       normalize_axes,
       lower_axes},
      {"Relu"},
      {"Reshape", 9, {{"allowzero", integer, 14, 24, "0"}}},
      {"Resize",
       9,  // as Upsample in opset 9
       {{"antialias", integer, 18, 24, "0"},
        {"axes", integers, 18},
        {"coordinate_transformation_mode", text, 11},
        {"cubic_coeff_a", real, 11},
        {"exclude_outside", integer, 11},
        {"extrapolation_value", real, 11},
        {"keep_aspect_ratio_policy", text, 18, 24, "stretch"},
        {"mode", text},
        {"nearest_mode", text, 11}},
       normalize_resize,
       lower_resize},
      {"RotaryEmbedding", 23, {{"interleaved", integer}, {"num_heads", integer}, {"rotary_embedding_dim", integer}}},
      {"Shape", 9, {{"end", integer, 15}, {"start", integer, 15, 24, "0"}}},
      {"Sigmoid"},
      {"Slice",
       9,
       {{"axes", integers, 9, 9}, {"ends", integers, 9, 9}, {"starts", integers, 9, 9}},
       normalize_slice,
       lower_slice},
      {"Softmax", 9, {{"axis", integer}}, normalize_softmax, lower_softmax},
      {"Split",
       9,
       {{"axis", integer}, {"num_outputs", integer, 18}, {"split", integers, 9, 12}},
       normalize_split,
       lower_split},
      {"Sqrt"},
      {"Squeeze", 9, {{"axes", integers, 9, 12}}, normalize_axes, lower_axes},
      {"Sub"},
      {"Tanh"},
      {"Transpose", 9, {{"perm", integers}}},
      {"Unsqueeze", 9, {{"axes", integers, 9, 12}}, normalize_axes, lower_axes},
      {"Upsample", 9, {{"mode", text}}, normalize_upsample},
      {"Where"},
  };
}

const char* describe(AttributeKind kind) {
  switch (kind) {
    case integer:
      return "an integer";
    case real:
      return "a float";
    case text:
      return "a string";
    case integers:
      return "a list of integers";
    case reals:
      return "a list of floats";
    case texts:
      return "a list of strings";
    case tensor:
      return "a tensor";
    case other:
      break;
  }
  return "a value of another kind (subgraph, type, string tensor or "
         "unsupported tensor)";
}

// In the order of Attribute's alternatives.
AttributeKind kind_of(const Attribute& attribute) {
  constexpr std::array kKinds{integer, real, text, integers, reals, texts, tensor, other};
  return kKinds[attribute.index()];
}

const AttributeRule* find_rule(const OpRow& row, std::string_view name) {
  const auto found = std::find_if(row.attributes.begin(), row.attributes.end(),
                                  [&](const AttributeRule& rule) { return rule.name == name; });
  return found == row.attributes.end() ? nullptr : &*found;
}

Status check_attributes(const FormContext& c, NodeId id, const OpRow& row) {
  for (const auto& [name, value] : c.graph.node(id).attributes.items()) {
    const AttributeRule* rule = find_rule(row, name);
    if (rule == nullptr || c.opset < rule->since || c.opset > rule->until) {
      return c.error(id, "attribute \"" + name + "\" does not belong to " + std::string(row.name) + " at opset " +
                             std::to_string(c.opset));
    }
    if (kind_of(value) != rule->kind) {
      return c.error(
          id, "attribute \"" + name + "\": expected " + describe(rule->kind) + ", found " + describe(kind_of(value)));
    }
  }
  return {};
}

bool is_neutral(const Attribute& value, std::string_view neutral) {
  if (neutral.empty()) return false;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number) == neutral;
  if (const auto* word = std::get_if<std::string>(&value)) return *word == neutral;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  return list != nullptr &&
         std::all_of(list->begin(), list->end(), [&](std::int64_t n) { return std::to_string(n) == neutral; });
}

}  // namespace

std::span<const OpRow> op_rows() {
  static const std::vector<OpRow> rows = make_rows();
  return rows;
}

const OpRow* find_row(std::string_view op_type) {
  const auto rows = op_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const OpRow& row) { return row.name == op_type; });
  return found == rows.end() ? nullptr : &*found;
}

Status normalize_node(FormContext& context, NodeId id) {
  const OpRow* row = find_row(context.graph.node(id).op_type);
  if (row == nullptr || !context.graph.node(id).domain.empty()) return {};
  if (row->name == "Constant") return {};  // checked where it became a value; what is left carries strings
  if (row->name == "Upsample" && context.opset > 9) return {};  // withdrawn from ONNX: carried as unknown
  const int since = row->name == "Resize" ? 10 : row->since;
  if (context.opset < since) {
    return context.error(id, std::string(row->name) + " exists since opset " + std::to_string(since) +
                                 ", the model imports opset " + std::to_string(context.opset));
  }
  CTK_CHECK(check_attributes(context, id, *row));
  return row->normalize == nullptr ? Status() : row->normalize(context, id);
}

Status lower_node(FormContext& context, NodeId id) {
  const OpRow* row = find_row(context.graph.node(id).op_type);
  if (row == nullptr || !context.graph.node(id).domain.empty()) return {};
  if (context.opset < row->since) return context.needs(id, row->since, std::string(row->name));
  if (row->lower != nullptr) CTK_CHECK(row->lower(context, id));
  std::vector<std::string> dropped;
  for (const auto& [name, value] : context.graph.node(id).attributes.items()) {
    const AttributeRule* rule = find_rule(*row, name);
    if (rule == nullptr || context.opset >= rule->since) continue;
    if (!is_neutral(value, rule->neutral)) {
      return context.needs(id, rule->since, std::string(row->name) + " with attribute \"" + name + "\"");
    }
    dropped.push_back(name);
  }
  for (const std::string& name : dropped) context.graph.node(id).attributes.erase(name);
  return {};
}

}  // namespace ctk::graph::onnx
