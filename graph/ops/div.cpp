// Div: a / b with broadcasting. Floats as IEEE; integers truncate towards zero, and dividing by zero is an error.
#include <algorithm>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

template <class T>
Status divide_integers(std::span<const TensorView> inputs, const MutableTensorView& out) {
  const auto divisors = inputs[1].values<T>();
  if (out.size() != 0 && std::find(divisors.begin(), divisors.end(), T{0}) != divisors.end()) {
    return input_error("input B: expected integers other than 0, found 0. Check the divisor.");
  }
  // The least integer / -1 does not fit: it wraps around to itself, like every other integer operator here.
  map_binary<T, T>(inputs[0], inputs[1], out, [](T a, T b) { return b == -1 ? SubtractValues()(T{0}, a) : a / b; });
  return {};
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  switch (outputs[0].dtype) {
    case DType::f32:
      map_binary<float, float>(inputs[0], inputs[1], outputs[0], [](float a, float b) { return a / b; });
      return {};
    case DType::i32:
      return divide_integers<std::int32_t>(inputs, outputs[0]);
    case DType::i64:
      return divide_integers<std::int64_t>(inputs, outputs[0]);
    default:
      return internal_error("element type " + std::string(name_of(outputs[0].dtype)) + " passed inference");
  }
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_binary(node, inputs, evaluate, kArithmeticTypes);
}

}  // namespace

const OpRules& rules_Div() {
  static const OpRules rules = {OpKind::binary, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
