// Shared by the operators that keep every element in place and change only the shape (Reshape, Flatten, Squeeze,
// Unsqueeze).
#pragma once

#include "graph/ops/movement.h"

namespace ctk::graph {

// The single output of such an operator; known contents go along. Errors: input (element counts differ, or the shape is
// out of range).
inline Result<std::vector<ValueInfo>> reinterpreted(const ValueInfo& from, Shape shape) {
  CTK_CHECK(check_rank(shape.size()));
  CTK_TRY(const std::size_t before, element_count(from.shape));
  CTK_TRY(const std::size_t after, element_count(shape));
  if (before != after) {
    return input_error("expected a shape of " + std::to_string(before) + " elements for input " +
                       to_string(from.shape) + ", found " + to_string(shape));
  }
  ValueInfo to{from.dtype, shape, std::nullopt};
  if (from.constant.has_value()) to.constant = from.constant->reshaped(std::move(shape));
  return std::vector<ValueInfo>{std::move(to)};
}

inline Status evaluate_reinterpreted(const Node&, std::span<const TensorView> inputs,
                                     std::span<const MutableTensorView> outputs) {
  return copy_all(inputs[0], outputs[0]);
}

}  // namespace ctk::graph
