// ReduceSum: the sum over the given axes (input 1), row-major; floats are summed in double, integers wrap around.
// In:  data f32, i32 or i64; axes i64 (optional; all when absent, none with noop_with_empty_axes).   Out: reduced.
#include "graph/ops/reduce.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  static const TensorView kNoAxes;
  const TensorView& data = inputs[0];
  const MutableTensorView& out = outputs[0];
  CTK_TRY(const AxisSet axes, reduced_axes(node, inputs.size() > 1 ? inputs[1] : kNoAxes, data.shape.size()));
  switch (data.dtype) {
    case DType::f32:
      reduce<double, float>(data, axes, out.as<float>(), [](double sum) { return static_cast<float>(sum); });
      return {};
    case DType::i32:
      reduce<std::uint32_t, std::int32_t>(data, axes, out.as<std::int32_t>(),
                                          [](std::uint32_t sum) { return static_cast<std::int32_t>(sum); });
      return {};
    case DType::i64:
      reduce<std::uint64_t, std::int64_t>(data, axes, out.as<std::int64_t>(),
                                          [](std::uint64_t sum) { return static_cast<std::int64_t>(sum); });
      return {};
    default:
      return internal_error("element type " + std::string(name_of(data.dtype)) + " passed inference");
  }
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_reduce(node, inputs, evaluate, {DType::f32, DType::i32, DType::i64});
}

}  // namespace

const OpRules& rules_ReduceSum() {
  static const OpRules rules = {OpKind::other, 1, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
