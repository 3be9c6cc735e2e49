// Sigmoid: y = 1 / (1 + exp(-x)) as core/sigmoid.h has it.
#include "core/sigmoid.h"

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  map_unary<float, float>(inputs[0], outputs[0], [](float x) { return sigmoid(x); });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_Sigmoid() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
