// MaxPool: the largest element under each window; padding never wins. NaN wins, so that a bad sample is not hidden.
// In:  X [N, C, spatial...] f32.   Out: Y [N, C, spatial...]; the Indices output is not computed.
// A window whose taps all miss the input is refused: it has no maximum.
#include <limits>

#include "graph/ops/pool.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  if (node.outputs.size() > 1 && node.outputs[1].is_valid()) {
    return input_error("output Indices: expected it unused, found it connected. Pool without indices.");
  }
  CTK_TRY(auto outputs, infer_pool(node, inputs));
  if (node.outputs.size() > 1) outputs.push_back({DType::i64, outputs[0].shape, std::nullopt});
  return outputs;
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  CTK_TRY(const Window window, pool_window_of(node, inputs[0].shape));
  const auto dims = as_volume(window);
  for_each_pool_position(inputs[0].shape, dims, inputs[0].as<float>(), outputs[0].as<float>(),
                         [&dims](const float* image, const auto& taps, const auto& at) {
                           float best = -std::numeric_limits<float>::infinity();
                           for_each_tap(dims, taps, at, image, [&best](float x) {
                             if (x > best || x != x) best = x;
                           });
                           return best;
                         });
  return {};
}

}  // namespace

const OpRules& rules_MaxPool() {
  static const OpRules rules = {OpKind::pool, 1, 1, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
