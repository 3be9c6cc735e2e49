#include "graph/ops/movement.h"
#include "graph/ops/reinterpret.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const Shape& shape = inputs[0].info.shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = node.attributes.get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    return input_error("axis: expected a value in [" + std::to_string(-rank) + "," + std::to_string(rank) +
                       "], found " + std::to_string(axis));
  }
  const auto split = shape.begin() + (axis < 0 ? axis + rank : axis);
  CTK_TRY(const std::size_t rows, element_count(Shape(shape.begin(), split)));
  CTK_TRY(const std::size_t columns, element_count(Shape(split, shape.end())));
  return reinterpreted(inputs[0].info, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
}

}  // namespace

const OpRules& rules_Flatten() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 1, infer, evaluate_reinterpreted};
  return kRules;
}

}  // namespace ctk::graph
