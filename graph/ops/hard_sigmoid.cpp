// HardSigmoid: y = alpha * x + beta, clipped to 0..1.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const float alpha = node.attributes.get_float("alpha", 0.2f);
  const float beta = node.attributes.get_float("beta", 0.5f);
  map_unary<float, float>(inputs[0], outputs[0], [alpha, beta](float x) {
    const float y = alpha * x + beta;
    return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
  });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_HardSigmoid() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
