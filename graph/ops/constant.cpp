#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

// The value lies in one of several attributes; this finds it without a copy.
Result<TensorView> contents_of(const Node& node) {
  const auto list = [](DType dtype, const auto& values) {
    return TensorView{dtype, {static_cast<std::int64_t>(values.size())}, values.data()};
  };
  for (const auto& [name, attribute] : node.attributes.items()) {
    if (const auto* tensor = std::get_if<Tensor>(&attribute); tensor != nullptr && name == "value") {
      return tensor->view();
    }
    if (const auto* number = std::get_if<float>(&attribute); number != nullptr && name == "value_float") {
      return TensorView{DType::f32, {}, number};
    }
    if (const auto* number = std::get_if<std::int64_t>(&attribute); number != nullptr && name == "value_int") {
      return TensorView{DType::i64, {}, number};
    }
    if (const auto* values = std::get_if<std::vector<float>>(&attribute); values != nullptr && name == "value_floats") {
      return list(DType::f32, *values);
    }
    if (const auto* values = std::get_if<std::vector<std::int64_t>>(&attribute);
        values != nullptr && name == "value_ints") {
      return list(DType::i64, *values);
    }
  }
  return input_error(
      "expected an attribute value, value_float, value_int, value_floats or value_ints, found none of them. Sparse "
      "tensors and strings are not computed with");
}

Status evaluate(const Node& node, std::span<const TensorView>, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const TensorView contents, contents_of(node));
  return copy_all(contents, outputs[0]);
}

InferResult infer(const Node& node, std::span<const InferInput>) {
  CTK_TRY(const TensorView contents, contents_of(node));
  if (bits_of(contents.dtype) == 0) return input_error("value: expected numbers, found strings");
  if (const Attribute* value = node.attributes.find("value");
      value != nullptr && std::holds_alternative<Tensor>(*value)) {
    return std::vector<ValueInfo>{{contents.dtype, contents.shape, std::get<Tensor>(*value)}};
  }
  CTK_TRY(Tensor copy, Tensor::zeros(contents.dtype, contents.shape));
  CTK_CHECK(copy_all(contents, copy.mutable_view()));
  return std::vector<ValueInfo>{{contents.dtype, contents.shape, std::move(copy)}};
}

}  // namespace

const OpRules& rules_Constant() {
  static constexpr OpRules kRules{OpKind::other, 0, 0, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
