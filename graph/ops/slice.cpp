#include <algorithm>

#include "graph/ops/movement.h"

namespace ctk::graph {
namespace {

// Where each output dimension starts in the input, how it steps and how long it is.
struct Window {
  Dims start{}, step{}, size{};
};

struct Bounds {
  Integers starts, ends, axes, steps;
};

void clamp_dimension(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step, std::size_t at,
                     Window& window) {
  // A step past the dimension takes one element only; the limit keeps -step and step * stride in range.
  constexpr std::int64_t kFar = std::int64_t{1} << 49;
  step = std::clamp(step, -kFar, kFar);
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  std::int64_t span = 0;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    span = end - start;
  } else {
    start = std::min(std::max<std::int64_t>(start, 0), dim - 1);
    end = std::min(std::max<std::int64_t>(end, -1), dim - 1);
    span = start - end;
  }
  const std::int64_t stride = step > 0 ? step : -step;
  window.size[at] = span <= 0 ? 0 : (span - 1) / stride + 1;
  window.start[at] = start;
  window.step[at] = window.size[at] > 1 ? step : 1;
}

Result<Window> window_of(const Shape& shape, const Bounds& bounds) {
  const std::size_t count = bounds.starts.count;
  if (bounds.ends.count != count || (bounds.axes.is_present() && bounds.axes.count != count) ||
      (bounds.steps.is_present() && bounds.steps.count != count)) {
    return input_error("expected starts, ends, axes and steps of one length, found " + std::to_string(count) + ", " +
                       std::to_string(bounds.ends.count) + ", " + std::to_string(bounds.axes.count) + " and " +
                       std::to_string(bounds.steps.count));
  }
  if (!bounds.axes.is_present() && count > shape.size()) {
    return input_error("starts: expected at most " + std::to_string(shape.size()) + " entries, found " +
                       std::to_string(count));
  }
  CTK_CHECK(check_rank(shape.size()));
  Window window;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    window.step[i] = 1;
    window.size[i] = shape[i];
  }
  std::array<bool, kMaxRank> is_cut{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t wish = bounds.axes.is_present() ? bounds.axes[i] : static_cast<std::int64_t>(i);
    CTK_TRY(const std::size_t axis, resolve_axis(wish, shape.size()));
    if (is_cut[axis]) return input_error("axes: dimension " + std::to_string(axis) + " is named twice");
    is_cut[axis] = true;
    const std::int64_t step = bounds.steps.is_present() ? bounds.steps[i] : 1;
    if (step == 0) return input_error("steps: expected no 0, found one at position " + std::to_string(i));
    clamp_dimension(shape[axis], bounds.starts[i], bounds.ends[i], step, axis, window);
  }
  return window;
}

Status evaluate(const Node&, std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs) {
  Bounds bounds;
  CTK_TRY(bounds.starts, integers_of(inputs, 1, "starts"));
  CTK_TRY(bounds.ends, integers_of(inputs, 2, "ends"));
  CTK_TRY(bounds.axes, integers_of(inputs, 3, "axes"));
  CTK_TRY(bounds.steps, integers_of(inputs, 4, "steps"));
  const Shape& shape = inputs[0].shape;
  CTK_TRY(const Window window, window_of(shape, bounds));
  const auto dims = std::span(window.size).first(shape.size());
  if (!std::equal(dims.begin(), dims.end(), outputs[0].shape.begin(), outputs[0].shape.end())) {
    return internal_error("bounds changed between plan and run");
  }
  if (outputs[0].size() == 0) return {};
  Dims strides = strides_of(shape);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    offset += window.start[i] * strides[i];
    strides[i] *= window.step[i];
  }
  const std::size_t size = element_bytes(inputs[0].dtype);
  copy_strided(inputs[0].as<std::byte>() + static_cast<std::size_t>(offset) * size, dims,
               std::span(strides).first(shape.size()), size, outputs[0].as<std::byte>());
  return {};
}

InferResult infer(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 3));
  const ValueInfo& data = inputs[0].info;
  CTK_CHECK(check_movable(data.dtype));
  Bounds bounds;
  CTK_TRY(bounds.starts, known_integers(inputs, 1, "starts"));
  CTK_TRY(bounds.ends, known_integers(inputs, 2, "ends"));
  CTK_TRY(bounds.axes, known_integers(inputs, 3, "axes"));
  CTK_TRY(bounds.steps, known_integers(inputs, 4, "steps"));
  CTK_TRY(const Window window, window_of(data.shape, bounds));
  const auto size = window.size.begin();
  CTK_TRY(auto outputs, single_output(data.dtype, Shape(size, size + static_cast<std::ptrdiff_t>(data.shape.size()))));
  return fold_if_known(node, inputs, std::move(outputs), evaluate);
}

}  // namespace

const OpRules& rules_Slice() {
  static constexpr OpRules kRules{OpKind::data_movement, 3, 5, infer, evaluate};
  return kRules;
}

}  // namespace ctk::graph
