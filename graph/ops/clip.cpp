// Clip: y = x limited to min..max; the bounds are scalars and may be omitted. max wins where min > max.
// NaN stays NaN, so that a bad sample is not hidden.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

template <class T>
void clip(std::span<const TensorView> inputs, const MutableTensorView& out) {
  const T* low = inputs.size() > 1 ? inputs[1].as<T>() : nullptr;
  const T* high = inputs.size() > 2 ? inputs[2].as<T>() : nullptr;
  map_unary<T, T>(inputs[0], out, [low, high](T x) {
    if (low != nullptr && x < *low) x = *low;
    if (high != nullptr && x > *high) x = *high;
    return x;
  });
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return with_arithmetic(outputs[0].dtype, [&]<class T>(T) { clip<T>(inputs, outputs[0]); });
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  constexpr std::string_view kNames[] = {"input", "min", "max"};
  CTK_CHECK(expect_inputs(inputs, 1));
  for (std::size_t i = 1; i < 3; ++i) {
    if (!is_present(inputs, i)) continue;
    CTK_CHECK(expect_dtype(inputs, i, kNames[i], {inputs[0].info.dtype}));
    const Shape& shape = inputs[i].info.shape;
    if (element_count(shape).value() != 1) {
      return input_error("input " + std::string(kNames[i]) + ": expected a scalar, found shape " + to_string(shape) +
                         ". Use Min and Max for tensors of bounds.");
    }
  }
  return infer_unary(node, inputs, evaluate, kArithmeticTypes);
}

}  // namespace

const OpRules& rules_Clip() {
  static const OpRules rules = {OpKind::unary, 1, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
