#include <cstring>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

// The element to repeat; a float 0 when the attribute is missing.
Result<TensorView> element_of(const Node& node) {
  static constexpr float kZero = 0.0f;
  const Attribute* value = node.attributes.find("value");
  if (value == nullptr) return TensorView{DType::f32, {}, &kZero};
  const auto* tensor = std::get_if<Tensor>(value);
  if (tensor == nullptr || tensor->size() != 1) return input_error("value: expected a tensor of one element");
  CTK_CHECK(check_movable(tensor->dtype()));
  return tensor->view();
}

Status evaluate(const Node& node, std::span<const TensorView>, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const TensorView element, element_of(node));
  const std::size_t size = element_bytes(element.dtype), count = outputs[0].size();
  std::byte* to = outputs[0].as<std::byte>();
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * size, element.data, size);
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_TRY(const Integers wish, known_integers(inputs, 0, "shape"));
  CTK_CHECK(check_rank(wish.count));
  Shape shape(wish.count);
  for (std::size_t i = 0; i < wish.count; ++i) shape[i] = wish[i];
  CTK_TRY(const TensorView element, element_of(node));
  CTK_TRY(auto outputs, single_output(element.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_ConstantOfShape() {
  static constexpr OpRules kRules{OpKind::other, 1, 1, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
