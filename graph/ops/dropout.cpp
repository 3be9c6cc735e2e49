// Dropout at inference: the data as it is, and a mask that keeps everything.
#include <cstring>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

InferResult infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_dtype(inputs, 2, "training_mode", {DType::boolean}));
  if (is_present(inputs, 2)) {
    const bool is_off = is_known(inputs, 2) && inputs[2].info.constant->size() == 1 &&
                        *static_cast<const std::uint8_t*>(inputs[2].info.constant->data()) == 0;
    if (!is_off) {
      return input_error(
          "training_mode: expected a constant false, found something else. Export the model for inference");
    }
  }
  return std::vector<ValueInfo>{inputs[0].info, {DType::boolean, inputs[0].info.shape, std::nullopt}};
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  if (!outputs.empty() && outputs[0].data != nullptr) CTK_CHECK(copy_all(inputs[0], outputs[0]));
  if (outputs.size() > 1 && outputs[1].data != nullptr) std::memset(outputs[1].data, 1, outputs[1].size());
  return {};
}

}  // namespace

const OpRules& rules_Dropout() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 3, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
