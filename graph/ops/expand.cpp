#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const TensorView& data = inputs[0];
  const Shape& shape = outputs[0].shape;
  const Dims own = strides_of(data.shape);
  const std::size_t lead = shape.size() - data.shape.size();
  Dims strides{};  // 0 where the input is repeated
  for (std::size_t d = 0; d < data.shape.size(); ++d) strides[lead + d] = data.shape[d] == 1 ? 0 : own[d];
  copy_strided(data.as<std::byte>(), shape, std::span(strides).first(shape.size()), element_bytes(data.dtype),
               outputs[0].as<std::byte>());
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  CTK_TRY(const Integers wish, known_integers(inputs, 1, "shape"));
  CTK_CHECK(check_rank(wish.count));
  CTK_CHECK(check_rank(data.shape.size()));
  Shape shape(wish.count);
  for (std::size_t i = 0; i < wish.count; ++i) shape[i] = wish[i];
  CTK_CHECK(element_count(shape));
  CTK_TRY(Shape joined, broadcast(data.shape, shape));
  CTK_TRY(auto outputs, single_output(data.dtype, std::move(joined)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Expand() {
  static constexpr OpRules kRules{OpKind::data_movement, 2, 2, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
