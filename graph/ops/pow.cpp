// Pow: base ^ exponent with broadcasting. The base is f32, the exponent f32, i32 or i64; the result f32.
// Exponents 2, 3 and 0.5, which networks write for squares, cubes and roots, are computed as such.
#include <cmath>
#include <utility>

#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

float power(float base, float exponent) {
  if (exponent == 2.0f) return base * base;
  if (exponent == 3.0f) return base * base * base;
  return std::pow(base, exponent);
}

template <class E>
void evaluate_as(std::span<const TensorView> inputs, const MutableTensorView& out) {
  // The output first takes the base, since the two operands may differ in type.
  combine_in_place<float>(out, inputs[0], [](float, float base) { return base; });
  using One = std::array<std::size_t, 1>;
  for_each_broadcast_row<1>(out.shape, {&inputs[1].shape},
                            [&](const One& offsets, const One& steps, std::size_t out_offset, std::size_t count) {
                              const E* exponent = inputs[1].as<E>() + offsets[0];
                              float* y = out.as<float>() + out_offset;
                              for (std::size_t i = 0; i < count; ++i) {
                                y[i] = power(y[i], static_cast<float>(exponent[i * steps[0]]));
                              }
                            });
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return with_arithmetic(inputs[1].dtype, [&]<class E>(E) { evaluate_as<E>(inputs, outputs[0]); });
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_dtype(inputs, 0, "X", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 1, "Y", kArithmeticTypes));
  CTK_CHECK(expect_rank("X", inputs[0].info.shape, 0));
  CTK_CHECK(expect_rank("Y", inputs[1].info.shape, 0));
  CTK_TRY(Shape shape, broadcast(inputs[0].info.shape, inputs[1].info.shape));
  CTK_TRY(auto outputs, single_output(DType::f32, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Pow() {
  static const OpRules rules = {OpKind::binary, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
