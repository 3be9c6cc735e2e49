// Abs: y = |x|. The least integer stays itself.
#include <cmath>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  switch (outputs[0].dtype) {
    case DType::f32:
      map_unary<float, float>(inputs[0], outputs[0], [](float x) { return std::fabs(x); });
      break;
    case DType::i32:
      map_unary<std::int32_t, std::int32_t>(inputs[0], outputs[0],
                                            [](auto x) { return x < 0 ? SubtractValues()(decltype(x){0}, x) : x; });
      break;
    case DType::i64:
      map_unary<std::int64_t, std::int64_t>(inputs[0], outputs[0],
                                            [](auto x) { return x < 0 ? SubtractValues()(decltype(x){0}, x) : x; });
      break;
    default:
      return internal_error("element type " + std::string(name_of(outputs[0].dtype)) + " passed inference");
  }
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_unary(node, inputs, evaluate, kArithmeticTypes);
}

}  // namespace

const OpRules& rules_Abs() {
  static const OpRules rules = {OpKind::unary, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
