// LayerNormalization: Y = (X - mean) / sqrt(variance + epsilon) * Scale + B over the dimensions from `axis` on.
// In:  X, Scale and B (optional) broadcast to X; all f32.
// Out: Y like X; Mean and InvStdDev (optional) like X with the normalized dimensions 1.
// Mean and variance (of the deviations, a second pass) are summed in double, as core/lane_sums.h has it.
#include "core/lane_sums.h"
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& x = inputs[0].info.shape;
  CTK_CHECK(expect_rank("X", x, 1));
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", -1), x.size()));
  CTK_CHECK(expect_broadcasts_to("Scale", inputs[1].info.shape, x));
  if (is_present(inputs, 2)) CTK_CHECK(expect_broadcasts_to("B", inputs[2].info.shape, x));
  if (const auto type = node.attributes.get_int("stash_type", 1); type != 1) {
    return input_error("stash_type: expected 1 (float), found " + std::to_string(type) + ". Export with float.");
  }
  CTK_TRY(auto outputs, single_output(DType::f32, x));
  Shape statistics = x;
  for (std::size_t d = axis; d < x.size(); ++d) statistics[d] = 1;
  while (outputs.size() < std::min<std::size_t>(node.outputs.size(), 3)) {
    outputs.push_back({DType::f32, statistics, std::nullopt});
  }
  return outputs;
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", -1), shape.size()));
  const double epsilon = node.attributes.get_float("epsilon", 1e-5f);
  std::size_t count = 1;
  for (std::size_t d = axis; d < shape.size(); ++d) count *= static_cast<std::size_t>(shape[d]);
  const std::size_t total = inputs[0].size();
  if (total == 0) return {};
  float* means = outputs.size() > 1 ? outputs[1].as<float>() : nullptr;
  float* inverses = outputs.size() > 2 ? outputs[2].as<float>() : nullptr;
  for (std::size_t row = 0; row < total / count; ++row) {
    const float* x = inputs[0].as<float>() + row * count;
    float* y = outputs[0].as<float>() + row * count;
    const auto [mean, inverse] = row_statistics(x, count, epsilon);
    for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<float>((x[i] - mean) * inverse);
    if (means != nullptr) means[row] = static_cast<float>(mean);
    if (inverses != nullptr) inverses[row] = static_cast<float>(inverse);
  }
  combine_in_place<float>(outputs[0], inputs[1], MultiplyValues());
  if (inputs.size() > 2 && inputs[2].data != nullptr) combine_in_place<float>(outputs[0], inputs[2], AddValues());
  return {};
}

}  // namespace

const OpRules& rules_LayerNormalization() {
  static const OpRules rules = {OpKind::other, 2, 3, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
