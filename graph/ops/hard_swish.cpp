// HardSwish: y = x * clip(x / 6 + 1/2, 0, 1).
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  map_unary<float, float>(inputs[0], outputs[0], [](float x) {
    const float gate = x * (1.0f / 6.0f) + 0.5f;
    return x * (gate < 0.0f ? 0.0f : gate > 1.0f ? 1.0f : gate);
  });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_HardSwish() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
