// Min: the smallest of one or more inputs, with broadcasting, on f32, i32 and i64. NaN wins, so that it is not hidden.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return evaluate_variadic(inputs, outputs, [](auto y, auto x) { return x < y || x != x ? x : y; });
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_variadic(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_Min() {
  static const OpRules rules = {OpKind::binary, 1, -1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
