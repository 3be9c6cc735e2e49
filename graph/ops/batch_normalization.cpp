// BatchNormalization, inference form: Y = (X - mean) * scale / sqrt(var + epsilon) + B, one channel at a time.
// In:  X [N, C, ...], scale [C], B [C], mean [C], var [C], all f32.
// Out: Y like X.
// The factor scale / sqrt(var + epsilon) is computed in double and rounded once, as the fold into a layer does.
#include <cmath>

#include "graph/ops/check.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 5));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& x = inputs[0].info.shape;
  CTK_CHECK(expect_rank("X", x, 2));
  constexpr std::string_view kNames[] = {"X", "scale", "B", "mean", "var"};
  for (std::size_t i = 1; i < 5; ++i) CTK_CHECK(expect_shape(kNames[i], inputs[i].info.shape, {x[1]}));
  if (node.attributes.get_int("training_mode", 0) != 0 || node.outputs.size() > 1) {
    return input_error(
        "training_mode: expected the inference form with one output, found the training form. "
        "Export the model in evaluation mode.");
  }
  return single_output(DType::f32, x);
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  const double epsilon = node.attributes.get_float("epsilon", 1e-5f);
  std::size_t plane = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) plane *= static_cast<std::size_t>(shape[d]);
  const auto channels = static_cast<std::size_t>(shape[1]);
  const float* x = inputs[0].as<float>();
  float* y = outputs[0].as<float>();
  for (std::size_t n = 0; n < static_cast<std::size_t>(shape[0]); ++n) {
    for (std::size_t c = 0; c < channels; ++c) {
      const float mean = inputs[3].as<float>()[c];
      const float bias = inputs[2].as<float>()[c];
      const auto factor = static_cast<float>(inputs[1].as<float>()[c] /
                                             std::sqrt(static_cast<double>(inputs[4].as<float>()[c]) + epsilon));
      const std::size_t first = (n * channels + c) * plane;
      for (std::size_t i = first; i < first + plane; ++i) y[i] = (x[i] - mean) * factor + bias;
    }
  }
  return {};
}

}  // namespace

const OpRules& rules_BatchNormalization() {
  static const OpRules rules = {OpKind::other, 5, 5, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
