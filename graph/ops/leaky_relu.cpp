// LeakyRelu: y = x for x >= 0, alpha * x below.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const float alpha = node.attributes.get_float("alpha", 0.01f);
  map_unary<float, float>(inputs[0], outputs[0], [alpha](float x) { return x < 0.0f ? alpha * x : x; });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_LeakyRelu() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
