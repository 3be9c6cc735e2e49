// RMSNormalization: Y = X / sqrt(mean of X^2 + epsilon) * Scale, the mean taken over the dimensions from `axis` on.
// In:  X, and scale broadcast to X; all f32.
// Out: Y like X.
// Squares are summed in double, as core/lane_sums.h has it.
#include <cmath>

#include "core/lane_sums.h"
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& x = inputs[0].info.shape;
  CTK_CHECK(expect_rank("X", x, 1));
  CTK_CHECK(resolve_axis(node.attributes.get_int("axis", -1), x.size()));
  CTK_CHECK(expect_broadcasts_to("scale", inputs[1].info.shape, x));
  if (const auto type = node.attributes.get_int("stash_type", 1); type != 1) {
    return input_error("stash_type: expected 1 (float), found " + std::to_string(type) + ". Export with float.");
  }
  return single_output(DType::f32, x);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", -1), shape.size()));
  const double epsilon = node.attributes.get_float("epsilon", 1e-5f);
  std::size_t count = 1;
  for (std::size_t d = axis; d < shape.size(); ++d) count *= static_cast<std::size_t>(shape[d]);
  const std::size_t total = inputs[0].size();
  if (total == 0) return {};
  for (std::size_t row = 0; row < total / count; ++row) {
    const float* x = inputs[0].as<float>() + row * count;
    float* y = outputs[0].as<float>() + row * count;
    const double mean = sum_of_squares(x, count) / static_cast<double>(count);
    const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + epsilon));
    for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * inverse;
  }
  combine_in_place<float>(outputs[0], inputs[1], MultiplyValues());
  return {};
}

}  // namespace

const OpRules& rules_RMSNormalization() {
  static const OpRules rules = {OpKind::other, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
