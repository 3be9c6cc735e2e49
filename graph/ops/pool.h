// What MaxPool and AveragePool share: legal forms, and the walk over output positions.
#pragma once

#include "graph/ops/check.h"
#include "graph/ops/window.h"

namespace ctk::graph {

// Shape rule: X [N, C, spatial...] f32, kernel_shape required, pads smaller than the window's extent, and under every
// window at least one element of the input.
InferResult infer_pool(const Node& node, std::span<const InferInput> inputs);

// Window of a pool whose infer() succeeded. Does not allocate.
Result<Window> pool_window_of(const Node& node, const Shape& input);

// The taps of one output position that lie inside [-before, input + after) in one dimension: start + k * dilation for k
// in [begin, end).
inline IndexRange taps_inside(const WindowDim& dim, std::int64_t output, std::int64_t before, std::int64_t after) {
  const std::int64_t start = output * dim.stride - dim.pad_begin;
  return positions_inside(dim.kernel, dim.dilation, start + before, before + dim.input + after);
}

// For every channel plane and output position, in order: reduce(image, taps, position) -> the output element. `image`
// is the plane's first element; taps[d] is the range of kernel taps inside the input along depth, height, width.
template <class Reduce>
void for_each_pool_position(const Shape& input, const std::array<WindowDim, 3>& dims, const float* x, float* y,
                            Reduce&& reduce) {
  const auto& [depth, height, width] = dims;
  const std::int64_t image_size = depth.input * height.input * width.input;
  for (std::int64_t plane = 0; plane < input[0] * input[1]; ++plane, x += image_size) {
    std::array<std::int64_t, 3> at;
    std::array<IndexRange, 3> taps;
    for (at[0] = 0; at[0] < depth.output; ++at[0]) {
      taps[0] = taps_inside(depth, at[0], 0, 0);
      for (at[1] = 0; at[1] < height.output; ++at[1]) {
        taps[1] = taps_inside(height, at[1], 0, 0);
        for (at[2] = 0; at[2] < width.output; ++at[2]) {
          taps[2] = taps_inside(width, at[2], 0, 0);
          *y++ = reduce(x, taps, at);
        }
      }
    }
  }
}

// Calls visit(element) for the input elements under the taps, row-major.
template <class Visit>
void for_each_tap(const std::array<WindowDim, 3>& dims, const std::array<IndexRange, 3>& taps,
                  const std::array<std::int64_t, 3>& at, const float* image, Visit&& visit) {
  const auto& [depth, height, width] = dims;
  for (std::int64_t kz = taps[0].begin; kz < taps[0].end; ++kz) {
    const std::int64_t z = at[0] * depth.stride - depth.pad_begin + kz * depth.dilation;
    for (std::int64_t ky = taps[1].begin; ky < taps[1].end; ++ky) {
      const std::int64_t y = at[1] * height.stride - height.pad_begin + ky * height.dilation;
      const float* row = image + (z * height.input + y) * width.input;
      const std::int64_t first = at[2] * width.stride - width.pad_begin;
      for (std::int64_t kx = taps[2].begin; kx < taps[2].end; ++kx) visit(row[first + kx * width.dilation]);
    }
  }
}

}  // namespace ctk::graph
