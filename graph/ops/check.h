// The checks every shape rule makes before it trusts a file. Messages say expected and found; the caller of infer()
// adds the node's address.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "graph/ops/fold.h"
#include "graph/ops/op.h"

namespace ctk::graph {

// Shape is a std::vector, so its to_string is not found from here without help.
using ctk::to_string;

// Elementwise and reduction loops keep their counters in arrays of this length.
inline constexpr std::size_t kMaxRank = 8;

inline bool is_present(std::span<const InferInput> inputs, std::size_t index) {
  return index < inputs.size() && inputs[index].present;
}

// The first `count` inputs are given, and every given one has a sane shape (no negative dimension, at most 2^48
// elements, empty dimensions counted as 1): call it first. Errors: input (position of the missing one).
Status expect_inputs(std::span<const InferInput> inputs, std::size_t count);

// Input `index`, if present, has one of `allowed` types. `name` is ONNX's name of the input ("X", "scale").
Status expect_dtype(std::span<const InferInput> inputs, std::size_t index, std::string_view name,
                    std::initializer_list<DType> allowed);

// Every present input is f32.
Status expect_all_f32(std::span<const InferInput> inputs);

// least <= rank <= most.
Status expect_rank(std::string_view name, const Shape& shape, std::size_t least, std::size_t most = kMaxRank);

// Exactly this shape.
Status expect_shape(std::string_view name, const Shape& shape, const Shape& expected);

// `from` broadcasts to `to` without changing it (ONNX "unidirectional").
Status expect_broadcasts_to(std::string_view name, const Shape& from, const Shape& to);

// Negative axes count from the end: axis in -rank..rank-1 becomes 0..rank-1. Errors: input.
Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

// One output of that type and shape. Errors: input (shape holds a negative dimension or more than 2^48 elements, empty
// dimensions counted as 1).
InferResult single_output(DType dtype, Shape shape);

// The type ONNX numbers so in TensorProto.DataType (as in attributes "to", "dtype", "output_dtype").
// Errors: input (a number we have no type for).
Result<DType> dtype_from_onnx(std::int64_t number);

// The integers of an attribute without copying them (evaluate() must not allocate); empty when absent.
std::span<const std::int64_t> ints_of(const Node& node, std::string_view name);
// The text of an attribute without copying it.
std::string_view text_of(const Node& node, std::string_view name, std::string_view fallback);

}  // namespace ctk::graph
