// Softmax: y = exp(x - max) / sum of it along one axis; the bits of the kernel `softmax` (kernels/softmax), on any
// axis. In:  X f32, any rank >= 1.   Out: Y like X.   Attribute: axis (-1).
#include <limits>

#include "core/exp_negative.h"
#include "graph/ops/check.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const std::size_t axis, resolve_axis(node.attributes.get_int("axis", -1), shape.size()));
  const std::size_t total = inputs[0].size();
  if (total == 0) return {};
  const auto count = static_cast<std::size_t>(shape[axis]);
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
  for (std::size_t outer = 0; outer < total; outer += count * inner) {
    for (std::size_t j = outer; j < outer + inner; ++j) {
      const float* x = inputs[0].as<float>() + j;
      float* y = outputs[0].as<float>() + j;
      float largest = -std::numeric_limits<float>::infinity();
      for (std::size_t i = 0; i < count; ++i) largest = x[i * inner] > largest ? x[i * inner] : largest;
      double lanes[8] = {};
      for (std::size_t i = 0; i < count; ++i) {
        y[i * inner] = exp_negative(x[i * inner] - largest);
        lanes[i % 8] += static_cast<double>(y[i * inner]);
      }
      double sum = 0.0;
      for (const double lane : lanes) sum += lane;
      const auto factor = static_cast<float>(1.0 / sum);
      for (std::size_t i = 0; i < count; ++i) y[i * inner] *= factor;
    }
  }
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& shape = inputs[0].info.shape;
  CTK_CHECK(resolve_axis(node.attributes.get_int("axis", -1), shape.size()));
  CTK_TRY(auto outputs, single_output(DType::f32, shape));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Softmax() {
  static const OpRules rules = {OpKind::other, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
