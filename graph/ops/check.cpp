#include "graph/ops/check.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ctk::graph {
namespace {

// An empty tensor may claim any other dimensions; counted as if it held one slice, so do they stay within bounds, and
// with them every partial product that rules and loops form.
Status expect_countable(Shape shape) {
  std::replace(shape.begin(), shape.end(), std::int64_t{0}, std::int64_t{1});
  CTK_CHECK(element_count(shape));
  return {};
}

}  // namespace

Status expect_inputs(std::span<const InferInput> inputs, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_present(inputs, i)) {
      return input_error("expected at least " + std::to_string(count) + " inputs, found input " + std::to_string(i) +
                         " missing. Connect it.");
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present) continue;
    if (auto valid = expect_countable(inputs[i].info.shape); !valid) {
      return std::move(valid).error().with_context("input " + std::to_string(i));
    }
  }
  return {};
}

Status expect_dtype(std::span<const InferInput> inputs, std::size_t index, std::string_view name,
                    std::initializer_list<DType> allowed) {
  if (!is_present(inputs, index)) return {};
  const DType found = inputs[index].info.dtype;
  if (std::find(allowed.begin(), allowed.end(), found) != allowed.end()) return {};
  std::string list;
  for (DType dtype : allowed) list += (list.empty() ? "" : " or ") + std::string(name_of(dtype));
  return input_error("input " + std::string(name) + ": expected " + list + ", found " + std::string(name_of(found)) +
                     ". Insert a Cast.");
}

Status expect_all_f32(std::span<const InferInput> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) CTK_CHECK(expect_dtype(inputs, i, std::to_string(i), {DType::f32}));
  return {};
}

Status expect_rank(std::string_view name, const Shape& shape, std::size_t least, std::size_t most) {
  if (shape.size() >= least && shape.size() <= most) return {};
  const std::string range =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  return input_error("input " + std::string(name) + ": expected " + range + " dimensions, found shape " +
                     to_string(shape) + ". Reshape it.");
}

Status expect_shape(std::string_view name, const Shape& shape, const Shape& expected) {
  if (shape == expected) return {};
  return input_error("input " + std::string(name) + ": expected shape " + to_string(expected) + ", found " +
                     to_string(shape) + ". Check the model's export.");
}

Status expect_broadcasts_to(std::string_view name, const Shape& from, const Shape& to) {
  bool fits = from.size() <= to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) {
    const std::int64_t dim = from[from.size() - 1 - i];
    fits = dim == 1 || dim == to[to.size() - 1 - i];
  }
  if (fits) return {};
  return input_error("input " + std::string(name) + ": expected a shape that broadcasts to " + to_string(to) +
                     ", found " + to_string(from) + ". Check the model's export.");
}

Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return input_error("axis: expected a value from " + std::to_string(-signed_rank) + " to " +
                       std::to_string(signed_rank - 1) + " for rank " + std::to_string(rank) + ", found " +
                       std::to_string(axis) + ". Check the model's export.");
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

InferResult single_output(DType dtype, Shape shape) {
  CTK_CHECK(expect_countable(shape));
  std::vector<ValueInfo> outputs(1);
  outputs[0].dtype = dtype;
  outputs[0].shape = std::move(shape);
  return outputs;
}

Result<DType> dtype_from_onnx(std::int64_t number) {
  switch (number) {
    case 1:
      return DType::f32;
    case 2:
      return DType::u8;
    case 3:
      return DType::i8;
    case 4:
      return DType::u16;
    case 5:
      return DType::i16;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 8:
      return DType::string;
    case 9:
      return DType::boolean;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 12:
      return DType::u32;
    case 13:
      return DType::u64;
    case 16:
      return DType::bf16;
    case 21:
      return DType::u4;
    case 22:
      return DType::i4;
    default:
      return input_error("element type: expected an ONNX type number we compute with (1 to 13, 16, 21, 22), found " +
                         std::to_string(number) + ". Convert the model to one of them.");
  }
}

std::span<const std::int64_t> ints_of(const Node& node, std::string_view name) {
  const Attribute* attribute = node.attributes.find(name);
  if (attribute == nullptr) return {};
  const auto* values = std::get_if<std::vector<std::int64_t>>(attribute);
  return values == nullptr ? std::span<const std::int64_t>{} : std::span<const std::int64_t>(*values);
}

std::string_view text_of(const Node& node, std::string_view name, std::string_view fallback) {
  const Attribute* attribute = node.attributes.find(name);
  const auto* text = attribute == nullptr ? nullptr : std::get_if<std::string>(attribute);
  return text == nullptr ? fallback : std::string_view(*text);
}

}  // namespace ctk::graph
