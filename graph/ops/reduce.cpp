#include "graph/ops/reduce.h"

#include <string>
#include <utility>

namespace ctk::graph {

Result<AxisSet> reduced_axes(const Node& node, const TensorView& axes, std::size_t rank) {
  AxisSet set;
  const std::size_t count = axes.data == nullptr ? 0 : axes.size();
  if (count == 0) {
    if (node.attributes.get_int("noop_with_empty_axes", 0) == 0) {
      for (std::size_t d = 0; d < rank; ++d) set.set(d);
    }
    return set;
  }
  for (std::int64_t axis : axes.values<std::int64_t>()) {
    CTK_TRY(const std::size_t resolved, resolve_axis(axis, rank));
    set.set(resolved);
  }
  return set;
}

InferResult infer_reduce(const Node& node, std::span<const InferInput> inputs, EvaluateFunction evaluate,
                         std::initializer_list<DType> allowed) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_dtype(inputs, 0, "data", allowed));
  CTK_CHECK(expect_dtype(inputs, 1, "axes", {DType::i64}));
  const Shape& data = inputs[0].info.shape;
  CTK_CHECK(expect_rank("data", data, 0));
  TensorView axes;
  if (is_present(inputs, 1)) {
    CTK_CHECK(expect_rank("axes", inputs[1].info.shape, 0, 1));
    if (!is_known(inputs, 1) && element_count(inputs[1].info.shape).value() != 0) {
      return input_error("input axes: expected values known before the run, found computed ones. Fix the axes.");
    }
    if (is_known(inputs, 1)) axes = inputs[1].info.constant->view();
  }
  CTK_TRY(const AxisSet set, reduced_axes(node, axes, data.size()));
  const bool keeps_dims = node.attributes.get_int("keepdims", 1) != 0;
  Shape shape;
  for (std::size_t d = 0; d < data.size(); ++d) {
    if (!set[d]) {
      shape.push_back(data[d]);
    } else if (keeps_dims) {
      shape.push_back(1);
    }
  }
  CTK_TRY(auto outputs, single_output(inputs[0].info.dtype, std::move(shape)));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace ctk::graph
