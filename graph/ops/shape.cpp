#include <algorithm>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

struct Range {
  std::size_t begin = 0, end = 0;
};

// start and end count from the back when negative and are clamped to the rank.
Range range_of(const Node& node, std::size_t dims) {
  const auto rank = static_cast<std::int64_t>(dims);
  const auto clamped = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = clamped(node.attributes.get_int("start", 0));
  const std::int64_t end = clamped(node.attributes.get_int("end", rank));
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(std::max(begin, end))};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  const Shape& shape = inputs[0].info.shape;
  const Range range = range_of(node, shape.size());
  const auto dims = std::span(shape).subspan(range.begin, range.end - range.begin);
  Tensor contents = Tensor::of<std::int64_t>({static_cast<std::int64_t>(dims.size())}, dims);
  return std::vector<ValueInfo>{{DType::i64, contents.shape(), contents}};
}

Status evaluate(const Node& node, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  const Shape& shape = inputs[0].shape;
  const Range range = range_of(node, shape.size());
  for (std::size_t i = range.begin; i < range.end; ++i) outputs[0].as<std::int64_t>()[i - range.begin] = shape[i];
  return {};
}

}  // namespace

const OpRules& rules_Shape() {
  static constexpr OpRules kRules{OpKind::other, 1, 1, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
