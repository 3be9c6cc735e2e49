// Sigmoid: y = 1 / (1 + exp(-x)), written so that exp never overflows.
#include <cmath>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  map_unary<float, float>(inputs[0], outputs[0], [](float x) {
    const float e = std::exp(-std::fabs(x));
    return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
  });
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
