// QuantizeLinear: code = saturate(round(x / scale) + zero_point); rounding to nearest, ties to even. NaN gives the zero
// point (the standard leaves it open).
// In:  x f32, scale f32 (per tensor, per axis or blocked: see scale_layout_of), zero_point (optional, shaped like
// scale). Out: codes shaped like x; type of zero_point, else attribute output_dtype, else u8.
#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/ops/scale_layout.h"

namespace ctk::graph {
namespace {

Result<DType> code_dtype(const Node& node, std::span<const InferInput> inputs) {
  const std::int64_t declared = node.attributes.get_int("output_dtype", 0);
  DType dtype = is_present(inputs, 2) ? inputs[2].info.dtype : DType::u8;
  if (declared != 0) {
    auto from_attribute = dtype_from_onnx(declared);
    if (!from_attribute) return std::move(from_attribute).error().with_context("output_dtype");
    if (is_present(inputs, 2) && *from_attribute != dtype) {
      return input_error("output_dtype: expected the type of zero_point, " + std::string(name_of(dtype)) + ", found " +
                         std::string(name_of(*from_attribute)) + ". Remove the attribute.");
    }
    dtype = *from_attribute;
  }
  if (code_range(dtype).most == 0) {
    return input_error("zero_point: expected a type of u8, i8, u16, i16, u4 or i4, found " +
                       std::string(name_of(dtype)) + ". Use one of them.");
  }
  return dtype;
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  static const TensorView kNoZeroPoint;
  const float* x = inputs[0].as<float>();
  const float* scales = inputs[1].as<float>();
  const TensorView& zero_points = inputs.size() > 2 ? inputs[2] : kNoZeroPoint;
  const MutableTensorView& out = outputs[0];
  const CodeRange range = code_range(out.dtype);
  CTK_TRY(const ScaleLayout layout, scale_layout_of(node, inputs[0].shape, inputs[1].shape));
  for_each_scaled(layout, [&](std::size_t i, std::size_t s) {
    const std::int64_t zero_point = read_code(zero_points, s);
    const double code = static_cast<double>(std::nearbyint(x[i] / scales[s])) + static_cast<double>(zero_point);
    const double limited = std::clamp(code, static_cast<double>(range.least), static_cast<double>(range.most));
    write_code(out, i, code != code ? zero_point : static_cast<std::int64_t>(limited));
  });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_dtype(inputs, 0, "x", {DType::f32}));
  CTK_CHECK(expect_dtype(inputs, 1, "scale", {DType::f32}));
  CTK_TRY(const DType dtype, code_dtype(node, inputs));
  if (const auto precision = node.attributes.get_int("precision", 0); precision != 0 && precision != 1) {
    return input_error("precision: expected float (1) or none, found " + std::to_string(precision) +
                       ". Remove the attribute.");
  }
  const Shape& scale = inputs[1].info.shape;
  CTK_CHECK(scale_layout_of(node, inputs[0].info.shape, scale));
  if (is_present(inputs, 2)) CTK_CHECK(expect_shape("zero_point", inputs[2].info.shape, scale));
  CTK_TRY(auto outputs, single_output(dtype, inputs[0].info.shape));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_QuantizeLinear() {
  static const OpRules rules = {OpKind::other, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
