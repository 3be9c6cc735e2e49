// Abs: y = |x|. The least integer stays itself.
#include <cmath>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return evaluate_unary(inputs, outputs, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>)
      return std::fabs(x);
    else
      return x < 0 ? SubtractValues()(decltype(x){0}, x) : x;
  });
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate, kArithmeticTypes);
}

}  // namespace

const OpRules& rules_Abs() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
