// PRelu: y = x for x >= 0, slope * x below; the slope broadcasts to x (a scalar, or [C, 1, 1] per channel).
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  map_binary<float, float>(inputs[0], inputs[1], outputs[0],
                           [](float x, float slope) { return x < 0.0f ? slope * x : x; });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_broadcasts_to("slope", inputs[1].info.shape, inputs[0].info.shape));
  return infer_binary(node, inputs, evaluate, {DType::f32});
}

}  // namespace

const OpRules& rules_PRelu() {
  static const OpRules rules = {OpKind::binary, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
