#include <algorithm>
#include <cstring>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

Result<std::size_t> axis_of(const Node& node, std::size_t rank) {
  const Attribute* axis = node.attributes.find("axis");
  if (axis == nullptr || !std::holds_alternative<std::int64_t>(*axis)) {
    return input_error("axis: expected an integer, found none");
  }
  return resolve_axis(std::get<std::int64_t>(*axis), rank);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = outputs[0].shape;
  CTK_TRY(const std::size_t axis, axis_of(node, shape.size()));
  if (outputs[0].size() == 0) return {};
  // Everything from the axis on lies together, so each input is one block per position of the dimensions before it.
  std::size_t rows = 1, row_bytes = element_bytes(outputs[0].dtype);
  for (std::size_t d = 0; d < axis; ++d) rows *= static_cast<std::size_t>(shape[d]);
  for (std::size_t d = axis; d < shape.size(); ++d) row_bytes *= static_cast<std::size_t>(shape[d]);
  std::byte* target = outputs[0].as<std::byte>();
  for (const TensorView& input : inputs) {
    const std::size_t block = input.size() * element_bytes(input.dtype) / rows;
    if (block == 0) continue;
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(target + row * row_bytes, input.as<std::byte>() + row * block, block);
    }
    target += block;
  }
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1)));
  const ValueInfo& first = inputs[0].info;
  CTK_CHECK(check_movable(first.dtype));
  CTK_CHECK(check_rank(first.shape.size()));
  CTK_TRY(const std::size_t axis, axis_of(node, first.shape.size()));
  Shape shape = first.shape;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const ValueInfo& other = inputs[i].info;
    if (other.dtype != first.dtype) {
      return input_error("input " + std::to_string(i) + ": expected " + std::string(name_of(first.dtype)) +
                         " as input 0, found " + std::string(name_of(other.dtype)));
    }
    Shape like = other.shape;
    if (like.size() == shape.size()) like[axis] = first.shape[axis];
    if (like != first.shape) {
      return input_error("input " + std::to_string(i) + ": expected the shape " + to_string(first.shape) +
                         " of input 0 but for dimension " + std::to_string(axis) + ", found " + to_string(other.shape));
    }
    // An empty tensor may claim any dimension, so the sum is checked by itself.
    if (other.shape[axis] > (std::int64_t{1} << 62) - shape[axis]) {
      return input_error("axis: the joined dimension " + std::to_string(axis) + " is past 2^62");
    }
    shape[axis] += other.shape[axis];
  }
  CTK_TRY(auto outputs, single_output(first.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Concat() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, -1, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
