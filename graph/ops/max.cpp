// Max: the largest of one or more inputs, with broadcasting, on f32, i32 and i64. NaN wins, so that it is not hidden.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

template <class T>
void evaluate_as(std::span<const TensorView> inputs, const MutableTensorView& out) {
  combine_in_place<T>(out, inputs[0], [](T, T x) { return x; });
  for (const TensorView& input : inputs.subspan(1)) {
    combine_in_place<T>(out, input, [](T y, T x) { return x > y || x != x ? x : y; });
  }
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  switch (outputs[0].dtype) {
    case DType::f32:
      evaluate_as<float>(inputs, outputs[0]);
      return {};
    case DType::i32:
      evaluate_as<std::int32_t>(inputs, outputs[0]);
      return {};
    case DType::i64:
      evaluate_as<std::int64_t>(inputs, outputs[0]);
      return {};
    default:
      return internal_error("element type " + std::string(name_of(outputs[0].dtype)) + " passed inference");
  }
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_variadic(node, inputs, evaluate);
}

}  // namespace

const OpRules& rules_Max() {
  static const OpRules rules = {OpKind::binary, 1, -1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
