// GlobalAveragePool: the mean of each channel's plane, summed in double, row-major.
// In:  X [N, C, spatial...] f32.   Out: Y [N, C, 1...].
#include "graph/ops/check.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_all_f32(inputs));
  Shape shape = inputs[0].info.shape;
  CTK_CHECK(expect_rank("X", shape, 3));
  for (std::size_t d = 2; d < shape.size(); ++d) {
    if (shape[d] < 1) {
      return input_error("input X: expected spatial sizes of at least 1, found shape " + to_string(shape) +
                         ". A mean over nothing is undefined.");
    }
    shape[d] = 1;
  }
  return single_output(DType::f32, std::move(shape));
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const std::size_t planes = outputs[0].size();
  if (planes == 0) return {};
  const std::size_t plane = inputs[0].size() / planes;
  const float* x = inputs[0].as<float>();
  for (std::size_t p = 0; p < planes; ++p, x += plane) {
    double sum = 0.0;
    for (std::size_t i = 0; i < plane; ++i) sum += x[i];
    outputs[0].as<float>()[p] = static_cast<float>(sum / static_cast<double>(plane));
  }
  return {};
}

}  // namespace

const OpRules& rules_GlobalAveragePool() {
  static const OpRules rules = {OpKind::pool, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
