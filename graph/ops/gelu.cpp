// Gelu: y = x * P(N(0, 1) <= x). approximate "none": by erf; "tanh": 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
// Both as core/gelu.h has them.
#include "core/gelu.h"
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  if (text_of(node, "approximate", "none") == "tanh") {
    map_unary<float, float>(inputs[0], outputs[0], [](float x) { return gelu_by_tanh(x); });
  } else {
    map_unary<float, float>(inputs[0], outputs[0], [](float x) { return gelu(x); });
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
