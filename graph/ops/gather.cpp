#include <cstring>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const TensorView& data = inputs[0];
  const TensorView& indices = inputs[1];
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", 0), data.shape.size()));
  std::size_t rows = 1, block = element_bytes(data.dtype);
  for (std::size_t d = 0; d < axis; ++d) rows *= static_cast<std::size_t>(data.shape[d]);
  for (std::size_t d = axis + 1; d < data.shape.size(); ++d) block *= static_cast<std::size_t>(data.shape[d]);
  const std::int64_t extent = data.shape[axis];
  const Integers wish{indices.data, indices.dtype == DType::i64, indices.size()};
  const std::size_t row_bytes = static_cast<std::size_t>(extent) * block;
  std::byte* target = outputs[0].as<std::byte>();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < wish.count; ++i) {
      const std::int64_t at = wish[i];
      if (at < -extent || at >= extent) {
        return input_error("indices: expected values in [" + std::to_string(-extent) + "," +
                           std::to_string(extent - 1) + "] for dimension " + std::to_string(axis) + " of " +
                           to_string(data.shape) + ", found " + std::to_string(at) + " at position " +
                           std::to_string(i));
      }
      const auto from = static_cast<std::size_t>(at < 0 ? at + extent : at);
      if (block != 0) std::memcpy(target, data.as<std::byte>() + row * row_bytes + from * block, block);
      target += block;
    }
  }
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_dtype(inputs, 1, "indices", {DType::i64, DType::i32}));
  const ValueInfo& data = inputs[0].info;
  const Shape& indices = inputs[1].info.shape;
  CTK_CHECK(check_movable(data.dtype));
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", 0), data.shape.size()));
  CTK_CHECK(check_rank(data.shape.size() - 1 + indices.size()));
  const auto split = data.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  Shape shape(data.shape.begin(), split);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), split + 1, data.shape.end());
  CTK_TRY(auto outputs, single_output(data.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Gather() {
  static constexpr OpRules kRules{OpKind::data_movement, 2, 2, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
