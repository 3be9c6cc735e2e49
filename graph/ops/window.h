// Sliding windows: the one place that turns strides, dilations, pads, auto_pad and ceil_mode into positions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace ctk::graph {

inline constexpr std::size_t kMaxSpatialRank = 3;

// One spatial dimension. Sizes are in elements; every field is checked: kernel, stride, dilation, output >= 1, pads >=
// 0, all below 2^31, so that any product of two of them fits 64 bits.
struct WindowDim {
  std::int64_t input = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;  // auto_pad resolved
  std::int64_t pad_end = 0;
  std::int64_t output = 1;

  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }  // input positions one window spans
};

// dims[0..rank-1] are the spatial dimensions in order; the entries past them are all ones.
struct Window {
  std::size_t rank = 0;
  std::array<WindowDim, kMaxSpatialRank> dims;
};

// The kernel's spatial sizes of a weight of Conv or ConvTranspose: [.., .., spatial...].
inline std::span<const std::int64_t> kernel_of(const Shape& weight) {
  return std::span(weight).subspan(2);
}
// Attribute kernel_shape, where there is one, says what the weight does. Errors: input.
Status expect_kernel_shape(const Node& node, const Shape& weight);

// Window of a Conv, MaxPool or AveragePool. `input` is [N, C, spatial...], `kernel_spatial` the kernel's spatial sizes.
// Output position o reads inputs o * stride - pad_begin + k * dilation for k < kernel. With ceil_mode a last window
// that would start in the end padding is dropped. A pool whose window is too large by less than a stride gets the one
// window, which hangs over, as in ONNX Runtime. auto_pad SAME_* ignores pads, as ONNX Runtime does. Does not allocate.
// Errors: input (rank, list lengths, values out of range, kernel larger than the padded input).
Result<Window> window_of(const Node& node, std::span<const std::int64_t> input,
                         std::span<const std::int64_t> kernel_spatial);

// Window of a ConvTranspose: input position i writes outputs i * stride - pad_begin + k * dilation. Output size from
// output_padding and pads, or from output_shape or auto_pad, which then give the pads. SAME_* cuts down to input *
// stride and adds nothing where the kernels reach less far. Does not allocate.
Result<Window> transposed_window_of(const Node& node, std::span<const std::int64_t> input,
                                    std::span<const std::int64_t> kernel_spatial);

// The dimensions moved to the end, so that 1-D and 2-D run as 3-D: depth, height, width; missing ones are all ones.
inline std::array<WindowDim, kMaxSpatialRank> as_volume(const Window& window) {
  std::array<WindowDim, kMaxSpatialRank> dims;
  for (std::size_t d = 0; d < window.rank; ++d) dims[kMaxSpatialRank - window.rank + d] = window.dims[d];
  return dims;
}

struct IndexRange {
  std::int64_t begin = 0, end = 0;  // [begin, end)
};
// The positions i in [0, count) for which i * stride + offset lies in [0, size): where a tap stays inside.
inline IndexRange positions_inside(std::int64_t count, std::int64_t stride, std::int64_t offset, std::int64_t size) {
  const std::int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const std::int64_t end = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
  return {begin, std::max(begin, std::min(end, count))};
}

}  // namespace ctk::graph
