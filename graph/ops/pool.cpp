#include "graph/ops/pool.h"

#include <string>
#include <utility>

namespace ctk::graph {
namespace {

// Taps further apart than the input is long can step over it. Only a window that starts in front of the input can.
Status expect_taps_inside(const WindowDim& dim, std::size_t d) {
  if (dim.input >= dim.dilation) return {};
  for (std::int64_t o = 0; o < dim.output && o * dim.stride < dim.pad_begin; ++o) {
    const IndexRange taps = taps_inside(dim, o, 0, 0);
    if (taps.begin < taps.end) continue;
    return input_error("window: expected every window to hold an element of the input, found one of kernel " +
                       std::to_string(dim.kernel) + ", dilation " + std::to_string(dim.dilation) +
                       " with taps in the padding only, at position " + std::to_string(o) + " of spatial dimension " +
                       std::to_string(d) + " (input " + std::to_string(dim.input) + ", padded by " +
                       std::to_string(dim.pad_begin) + " and " + std::to_string(dim.pad_end) +
                       "). Correct the model's pads, auto_pad or dilations.");
  }
  return {};
}

}  // namespace

Result<Window> pool_window_of(const Node& node, const Shape& input) {
  return window_of(node, input, ints_of(node, "kernel_shape"));
}

InferResult infer_pool(const Node& node, std::span<const InferInput> inputs) {
  CTK_CHECK(expect_inputs(inputs, 1));
  CTK_CHECK(expect_all_f32(inputs));
  const Shape& x = inputs[0].info.shape;
  CTK_CHECK(expect_rank("X", x, 3, 2 + kMaxSpatialRank));
  if (ints_of(node, "kernel_shape").empty()) {
    return input_error("kernel_shape: expected " + std::to_string(x.size() - 2) +
                       " values, found none. Add the attribute.");
  }
  CTK_TRY(const Window window, pool_window_of(node, x));
  const bool counts_pads = node.op == Op::AveragePool && node.attributes.get_int("count_include_pad", 0) != 0;
  Shape shape = {x[0], x[1]};
  for (std::size_t d = 0; d < window.rank; ++d) {
    const WindowDim& dim = window.dims[d];
    if (dim.pad_begin >= dim.extent() || dim.pad_end >= dim.extent()) {
      return input_error("pads: expected less than the window's " + std::to_string(dim.extent()) + " elements, found " +
                         std::to_string(std::max(dim.pad_begin, dim.pad_end)) +
                         ". A window inside the padding has nothing to pool.");
    }
    CTK_CHECK(expect_taps_inside(dim, d));
    const std::int64_t padded = dim.input + dim.pad_begin + dim.pad_end;
    if (counts_pads && dim.extent() > padded) {
      return input_error("count_include_pad: expected a padded input of at least the window's " +
                         std::to_string(dim.extent()) + " elements, found " + std::to_string(padded) +
                         " in spatial dimension " + std::to_string(d) +
                         "; what hangs over counts in ONNX Runtime up to opset 18 and not later. Pad explicitly.");
    }
    shape.push_back(dim.output);
  }
  return single_output(DType::f32, std::move(shape));
}

}  // namespace ctk::graph
