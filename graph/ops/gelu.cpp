// Gelu: y = x * P(N(0, 1) <= x). approximate "none": by erf; "tanh": 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#include <cmath>
#include <numbers>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  if (text_of(node, "approximate", "none") == "tanh") {
    constexpr float kSlope = 0.7978845608028654f;  // sqrt(2 / pi)
    map_unary<float, float>(inputs[0], outputs[0], [](float x) {
      return 0.5f * x * (1.0f + std::tanh(kSlope * (x + 0.044715f * x * x * x)));
    });
  } else {
    constexpr float kRootHalf = std::numbers::sqrt2_v<float> / 2.0f;
    map_unary<float, float>(inputs[0], outputs[0], [](float x) { return 0.5f * x * (1.0f + std::erf(x * kRootHalf)); });
  }
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  const std::string_view form = text_of(node, "approximate", "none");
  if (form != "none" && form != "tanh") {
    return input_error("approximate: expected \"none\" or \"tanh\", found \"" + std::string(form) +
                       "\". Correct the attribute.");
  }
  return infer_unary(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_Gelu() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
