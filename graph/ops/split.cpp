#include <algorithm>
#include <cstring>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

Result<std::size_t> axis_of(const Node& node, const Shape& shape) {
  return resolve_axis(node.attributes.get_int("axis", 0), shape.size());
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const TensorView& data = inputs[0];
  CTK_TRY(const std::size_t axis, axis_of(node, data.shape));
  if (data.size() == 0) return {};
  std::size_t rows = 1, row_bytes = element_bytes(data.dtype);
  for (std::size_t d = 0; d < axis; ++d) rows *= static_cast<std::size_t>(data.shape[d]);
  for (std::size_t d = axis; d < data.shape.size(); ++d) row_bytes *= static_cast<std::size_t>(data.shape[d]);
  const std::size_t slice_bytes = row_bytes / static_cast<std::size_t>(data.shape[axis]);
  const std::byte* from = data.as<std::byte>();
  for (const MutableTensorView& output : outputs) {
    // A part nobody reads may come without memory; its shape still says how much to skip.
    const std::size_t block = static_cast<std::size_t>(output.shape[axis]) * slice_bytes;
    for (std::size_t row = 0; output.data != nullptr && block != 0 && row < rows; ++row) {
      std::memcpy(output.as<std::byte>() + row * block, from + row * row_bytes, block);
    }
    from += block;
  }
  return {};
}

// Parts of a dimension: as listed, or in equal parts of which the last may be smaller.
Result<std::vector<std::int64_t>> parts_of(const Node& node, std::span<const InferInput> inputs, std::int64_t dim) {
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  if (count == 0) return input_error("expected at least one output, found none");
  for (ValueId output : node.outputs) {
    if (!output.is_valid()) return input_error("expected every output to be named, found one omitted");
  }
  std::vector<std::int64_t> parts;
  CTK_TRY(const Integers listed, known_integers(inputs, 1, "split"));
  if (listed.is_present()) {
    if (static_cast<std::int64_t>(listed.count) != count) {
      return input_error("split: expected " + std::to_string(count) + " sizes, one an output, found " +
                         std::to_string(listed.count));
    }
    std::int64_t rest = dim;
    for (std::size_t i = 0; i < listed.count; ++i) {
      if (listed[i] < 0 || listed[i] > rest) {
        return input_error("split: expected sizes that sum to " + std::to_string(dim) + ", found " +
                           std::to_string(listed[i]) + " at position " + std::to_string(i) + " where " +
                           std::to_string(rest) + " are left");
      }
      rest -= listed[i];
      parts.push_back(listed[i]);
    }
    if (rest != 0) {
      return input_error("split: expected sizes that sum to " + std::to_string(dim) + ", found a sum of " +
                         std::to_string(dim - rest));
    }
    return parts;
  }
  const std::int64_t wish = node.attributes.get_int("num_outputs", count);
  if (wish != count) {
    return input_error("num_outputs: expected " + std::to_string(count) + ", the outputs there are, found " +
                       std::to_string(wish));
  }
  const std::int64_t part = dim / count + (dim % count != 0 ? 1 : 0);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i * part > dim) {
      return input_error("num_outputs: dimension " + std::to_string(dim) + " is too short for " +
                         std::to_string(count) + " parts of " + std::to_string(part));
    }
    parts.push_back(std::min(part, dim - i * part));
  }
  return parts;
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  CTK_CHECK(check_rank(data.shape.size()));
  CTK_TRY(const std::size_t axis, axis_of(node, data.shape));
  CTK_TRY(const auto parts, parts_of(node, inputs, data.shape[axis]));
  std::vector<ValueInfo> outputs;
  for (std::int64_t part : parts) {
    outputs.push_back({data.dtype, data.shape, std::nullopt});
    outputs.back().shape[axis] = part;
    CTK_CHECK(element_count(outputs.back().shape));
  }
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Split() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 2, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
