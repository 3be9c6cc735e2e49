// Equal: a == b with broadcasting, as bool. NaN equals nothing. On f32, i32, i64, bool, u8 and i8.
#include "graph/ops/elementwise.h"

namespace ctk::graph {
namespace {

template <class T>
void compare(std::span<const TensorView> inputs, const MutableTensorView& out) {
  map_binary<T, std::uint8_t>(inputs[0], inputs[1], out, [](T a, T b) -> std::uint8_t { return a == b ? 1 : 0; });
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  switch (inputs[0].dtype) {
    case DType::f32:
      compare<float>(inputs, outputs[0]);
      return {};
    case DType::i32:
      compare<std::int32_t>(inputs, outputs[0]);
      return {};
    case DType::i64:
      compare<std::int64_t>(inputs, outputs[0]);
      return {};
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      compare<std::uint8_t>(inputs, outputs[0]);
      return {};
    default:
      return internal_error("element type " + std::string(name_of(inputs[0].dtype)) + " passed inference");
  }
}

Result<std::vector<ValueInfo>> infer(const Node& node, std::span<const InferInput> inputs) {
  return infer_binary(node, inputs, evaluate,
                      {DType::f32, DType::i32, DType::i64, DType::boolean, DType::u8, DType::i8}, DType::boolean);
}

}  // namespace

const OpRules& rules_Equal() {
  static const OpRules rules = {OpKind::binary, 2, 2, infer, evaluate};
  return rules;
}

}  // namespace ctk::graph
