// Older forms of Resize: Upsample of opset 9, Resize of opset 10, and the
// required empty inputs of opset 11.
#include <algorithm>

#include "graph/onnx/op_forms.h"

namespace ctk::graph::onnx {
namespace {

constexpr std::size_t kRoi = 1, kScales = 2, kSizes = 3;

// Whether any constant scale lies above 1 (`enlarges`) or below.
bool any_scale(const FormContext& c, ValueId scales, bool enlarges) {
  if (!scales.is_valid() || !c.graph.value(scales).constant) return false;
  const auto values = to_f32(*c.graph.value(scales).constant);
  if (!values) return false;
  const auto list = values->values<float>();
  return std::any_of(list.begin(), list.end(), [&](float s) { return enlarges ? s > 1.0f : s < 1.0f; });
}

// Opset 10 says nothing about rounding. Runtimes round down when enlarging and up when shrinking, axis by axis; one
// rounding serves a node unless it does both.
Result<std::string> old_nearest_mode(const FormContext& c, NodeId id, ValueId scales) {
  if (c.graph.node(id).attributes.get_string("mode", "nearest") != "nearest") return std::string("floor");
  const bool shrinks = any_scale(c, scales, false);
  if (shrinks && any_scale(c, scales, true)) {
    return c.error(id, "nearest that shrinks one axis and enlarges another is not supported below opset 11");
  }
  return std::string(shrinks ? "ceil" : "floor");
}

Status from_scales(FormContext& c, NodeId id) {
  if (c.graph.node(id).inputs.size() != 2) {
    return c.error(id, "expected inputs X and scales, found " + std::to_string(c.graph.node(id).inputs.size()));
  }
  const ValueId scales = c.input(id, 1);
  CTK_TRY(const std::string rounding, old_nearest_mode(c, id, scales));
  c.graph.set_input(id, kScales, scales);
  c.graph.set_input(id, kRoi, {});
  auto& attributes = c.graph.node(id).attributes;
  attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  if (attributes.get_string("mode", "nearest") == "nearest") attributes.set("nearest_mode", rounding);
  return {};
}

}  // namespace

Status normalize_upsample(FormContext& c, NodeId id) {
  c.graph.node(id).op_type = "Resize";
  c.graph.node(id).op = Op::Resize;
  return from_scales(c, id);
}

Status normalize_resize(FormContext& c, NodeId id) {
  if (c.opset < 11) return from_scales(c, id);
  // An empty tensor stands for an omitted input.
  for (std::size_t i = kRoi; i < c.graph.node(id).inputs.size(); ++i) {
    const ValueId value = c.input(id, i);
    if (!value.is_valid() || !c.graph.value(value).constant || c.graph.value(value).constant->size() != 0) continue;
    c.graph.set_input(id, i, {});
    c.orphans.insert(value);
  }
  if (c.input(id, kScales).is_valid() && c.input(id, kSizes).is_valid()) {
    return c.error(id, "expected scales or sizes, found both");
  }
  return {};
}

Status lower_resize(FormContext& c, NodeId id) {
  auto& attributes = c.graph.node(id).attributes;
  const std::string coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  if (c.opset < 19 && coordinates == "half_pixel_symmetric") return c.needs(id, 19, "half_pixel_symmetric");
  if (c.opset >= 13) {
    if (coordinates == "tf_half_pixel_for_nn") {
      return c.error(id,
                     "tf_half_pixel_for_nn exists up to opset 12, the "
                     "model is to be written for opset " +
                         std::to_string(c.opset));
    }
    return {};
  }
  const ValueId scales = c.input(id, kScales);
  if (c.opset >= 11) {
    for (const std::size_t i : {kRoi, kScales}) {
      if (c.input(id, i).is_valid()) continue;
      const std::string name = c.new_name(c.graph.address(id) + (i == kRoi ? "_roi" : "_scales"));
      CTK_TRY(Tensor empty, Tensor::zeros(DType::f32, {0}));
      c.graph.set_input(id, i, c.graph.add_constant(name, std::move(empty)));
    }
    return {};
  }
  const bool is_nearest = attributes.get_string("mode", "nearest") == "nearest";
  CTK_TRY(const std::string rounding, old_nearest_mode(c, id, scales));
  const bool fits = scales.is_valid() && coordinates == "asymmetric" && !attributes.get_int("exclude_outside", 0) &&
                    attributes.get_string("mode", "nearest") != "cubic" &&
                    (!is_nearest || attributes.get_string("nearest_mode", "round_prefer_floor") == rounding);
  if (!fits) return c.needs(id, 11, "Resize with these coordinates, rounding or sizes");
  if (c.opset < 10) {
    if (any_scale(c, scales, false)) return c.needs(id, 10, "Resize to a smaller size");
    c.graph.node(id).op_type = "Upsample";
    c.graph.node(id).op = Op::unknown;
  }
  for (const char* name :
       {"coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value"}) {
    attributes.erase(name);
  }
  c.graph.set_input(id, kRoi, scales);
  c.graph.set_input(id, kScales, {});
  c.drop_inputs_from(id, kScales);
  return {};
}

}  // namespace ctk::graph::onnx
