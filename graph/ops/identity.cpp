#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  return std::vector<ValueInfo>{inputs[0].info};
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  return copy_all(inputs[0], outputs[0]);
}

}  // namespace

const OpRules& rules_Identity() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 1, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
