// Elu: y = x for x >= 0, alpha * (exp(x) - 1) below.
#include <cmath>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const float alpha = node.attributes.get_float("alpha", 1.0f);
  map_unary<float, float>(inputs[0], outputs[0], [alpha](float x) { return x < 0.0f ? alpha * std::expm1(x) : x; });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_Elu() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
