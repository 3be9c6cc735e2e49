#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

// Source dimension of each output dimension; without the attribute, in reverse.
Result<Dims> permutation(const Node& node, std::size_t rank) {
  CTK_CHECK(check_rank(rank));
  const auto perm = ints_of(node, "perm");
  Dims from{};
  if (perm.empty()) {
    for (std::size_t i = 0; i < rank; ++i) from[i] = static_cast<std::int64_t>(rank - 1 - i);
    return from;
  }
  if (perm.size() != rank) {
    return input_error("perm: expected " + std::to_string(rank) + " entries, found " + std::to_string(perm.size()));
  }
  std::array<bool, kMaxRank> is_used{};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_in_range = perm[i] >= 0 && perm[i] < static_cast<std::int64_t>(rank);
    if (!is_in_range || is_used[static_cast<std::size_t>(perm[i])]) {
      return input_error("perm: expected each of 0.." + std::to_string(rank - 1) + " once, found " +
                         to_string(Shape(perm.begin(), perm.end())));
    }
    is_used[static_cast<std::size_t>(perm[i])] = true;
    from[i] = perm[i];
  }
  return from;
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const Dims from, permutation(node, shape.size()));
  const Dims strides = strides_of(shape);
  Dims dims{}, steps{};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    dims[i] = shape[static_cast<std::size_t>(from[i])];
    steps[i] = strides[static_cast<std::size_t>(from[i])];
  }
  copy_strided(inputs[0].as<std::byte>(), std::span(dims).first(shape.size()), std::span(steps).first(shape.size()),
               element_bytes(inputs[0].dtype), outputs[0].as<std::byte>());
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  CTK_TRY(const Dims from, permutation(node, data.shape.size()));
  Shape shape(data.shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = data.shape[static_cast<std::size_t>(from[i])];
  CTK_TRY(auto outputs, single_output(data.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Transpose() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 1, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
