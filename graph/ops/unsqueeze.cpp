#include "graph/ops/reinterpret.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 2));
  const Shape& from = inputs[0].info.shape;
  CTK_TRY(const Integers axes, known_integers(inputs, 1, "axes"));
  const std::size_t rank = from.size() + axes.count;
  CTK_CHECK(check_rank(rank));
  std::array<bool, kMaxRank> is_added{};
  for (std::size_t i = 0; i < axes.count; ++i) {
    CTK_TRY(const std::size_t axis, resolve_axis(axes[i], rank));
    if (is_added[axis]) {
      return input_error("axes: " + std::to_string(axes[i]) + " is named twice");
    }
    is_added[axis] = true;
  }
  Shape shape;
  auto next = from.begin();
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(is_added[i] ? 1 : *next++);
  return reinterpreted(inputs[0].info, std::move(shape));
}

}  // namespace

const OpRules& rules_Unsqueeze() {
  static constexpr OpRules kRules{OpKind::data_movement, 2, 2, infer, evaluate_reinterpreted};
  return kRules;
}

}  // namespace ctk::graph
