// Following contents through shape inference: when everything an operator reads is known, its output is known too.
#pragma once

#include <span>
#include <vector>

#include "graph/ops/op.h"

namespace ctk::graph {

// Contents past this size are not followed: shapes, axes, sizes and masks are small, weights are none of our business.
inline constexpr std::size_t kMaxFoldedElements = 1024;

using InferResult = Result<std::vector<ValueInfo>>;
using EvaluateFunction = Status (*)(const Node& node, std::span<const TensorView> inputs,
                                    std::span<const MutableTensorView> outputs);

// True when the input is given and its contents are known before the run.
inline bool is_known(std::span<const InferInput> inputs, std::size_t index) {
  return index < inputs.size() && inputs[index].present && inputs[index].info.constant.has_value();
}

// Completes `outputs` (dtype and shape already right) with contents, by running `evaluate` on the known inputs. Leaves
// them as they are when an input is unknown, when any tensor involved holds more than kMaxFoldedElements, or is a
// string. The last statement of an infer(): return fold_if_known(node, inputs, std::move(outputs), evaluate); Errors:
// those of evaluate (an integer division by zero, say); input (memory refused).
InferResult fold_if_known(const Node& node, std::span<const InferInput> inputs, std::vector<ValueInfo> outputs,
                          EvaluateFunction evaluate);

}  // namespace ctk::graph
