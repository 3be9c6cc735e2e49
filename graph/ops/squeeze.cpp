#include "graph/ops/reinterpret.h"

namespace ctk::graph {
namespace {

Result<std::vector<ValueInfo>> infer(const Node&, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const Shape& from = inputs[0].info.shape;
  CTK_CHECK(check_rank(from.size()));
  CTK_TRY(const Integers axes, known_integers(inputs, 1, "axes"));
  std::array<bool, kMaxRank> is_dropped{};
  for (std::size_t i = 0; i < axes.count; ++i) {
    CTK_TRY(const std::size_t at, resolve_axis(axes[i], from.size()));
    if (is_dropped[at]) return input_error("axes: " + std::to_string(axes[i]) + " is named twice");
    if (from[at] != 1) {
      return input_error("axes: expected dimension " + std::to_string(at) + " of " + to_string(from) +
                         " to be 1, found " + std::to_string(from[at]));
    }
    is_dropped[at] = true;
  }
  Shape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (axes.is_present() ? !is_dropped[i] : from[i] != 1) shape.push_back(from[i]);
  }
  return reinterpreted(inputs[0].info, std::move(shape));
}

}  // namespace

const OpRules& rules_Squeeze() {
  static constexpr OpRules kRules{OpKind::data_movement, 1, 2, infer, evaluate_reinterpreted};
  return kRules;
}

}  // namespace ctk::graph
