// ReduceMean: the mean over the given axes (input 1), summed in double, row-major.
// In:  data f32, axes i64 (optional; all when absent, none with noop_with_empty_axes).   Out: reduced, f32.
#include "graph/ops/reduce.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  static const TensorView kNoAxes;
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const AxisSet axes, reduced_axes(node, inputs.size() > 1 ? inputs[1] : kNoAxes, shape.size()));
  double count = 1.0;
  for (std::size_t d = 0; d < shape.size(); ++d) count *= axes[d] ? static_cast<double>(shape[d]) : 1.0;
  reduce<double, float>(inputs[0], axes, outputs[0].as<float>(),
                        [count](double sum) { return static_cast<float>(sum / count); });
  return {};
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_TRY(auto outputs, infer_reduce(node, inputs, evaluate, {DType::f32}));
  const auto count = element_count(inputs[0].info.shape);
  if (*count == 0 && elements(outputs[0].shape) != 0) {
    return input_error("input data: expected at least one element to average, found shape " +
                       to_string(inputs[0].info.shape) + ". A mean over nothing is undefined.");
  }
  return outputs;
}

}  // namespace

const OpRules& rules_ReduceMean() {
  static const OpRules rules = {OpKind::other, 1, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
