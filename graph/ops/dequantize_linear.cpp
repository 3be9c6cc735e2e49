// DequantizeLinear: y = (code - zero_point) * scale; the difference is exact, one rounding to float, one product.
// In:  codes u8, i8, u16, i16, i32, u4 or i4; scale f32 (per tensor, per axis or blocked: see scale_layout_of);
//      zero_point (optional, type of the codes, shaped like scale).
// Out: f32 shaped like the codes.
#include <utility>

#include "graph/ops/scale_layout.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  static const TensorView kNoZeroPoint;
  const TensorView& codes = inputs[0];
  const float* scales = inputs[1].as<float>();
  const TensorView& zero_points = inputs.size() > 2 ? inputs[2] : kNoZeroPoint;
  float* y = outputs[0].as<float>();
  CTK_TRY(const ScaleLayout layout, scale_layout_of(node, codes.shape, inputs[1].shape));
  for_each_scaled(layout, [&](std::size_t i, std::size_t s) {
    y[i] = static_cast<float>(read_code(codes, i) - read_code(zero_points, s)) * scales[s];
  });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(
      expect_dtype(inputs, 0, "x", {DType::u8, DType::i8, DType::u16, DType::i16, DType::i32, DType::u4, DType::i4}));
  CTK_CHECK(expect_dtype(inputs, 1, "scale", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 2, "zero_point", {inputs[0].info.dtype}));
  if (const auto type = node.attributes.get_int("output_dtype", 0); type != 0 && type != 1) {
    return input_error("output_dtype: expected float (1) or none, found " + std::to_string(type) +
                       ". Remove the attribute.");
  }
  const Shape& scale = inputs[1].info.shape;
  CTK_CHECK(scale_layout_of(node, inputs[0].info.shape, scale));
  if (is_present(inputs, 2)) CTK_CHECK(expect_shape("zero_point", inputs[2].info.shape, scale));
  CTK_TRY(auto outputs, single_output(DType::f32, inputs[0].info.shape));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_DequantizeLinear() {
  static const OpRules rules = {OpKind::other, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
