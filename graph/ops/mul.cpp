// Mul: a * b with broadcasting, on f32, i32 and i64 (shape arithmetic).
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return evaluate_binary(inputs, outputs, MultiplyValues());
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_binary(node, inputs, evaluate, kArithmeticTypes);
}

}  // namespace

const OpRules& rules_Mul() {
  static const OpRules rules = {OpKind::binary, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
