// Convolution shapes for tests, and what a window reads, worked out from the definition.
#pragma once

#include <string>

#include "core/random.h"
#include "kernels/conv_shape.h"

namespace ctk::test {

inline std::string describe(const kernels::ConvShape& s) {
  const auto pair = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + "x" + std::to_string(b); };
  return "batch " + std::to_string(s.batch) + " in " + pair(s.in_height, s.in_width) + "x" +
         std::to_string(s.in_channels) + " out " + pair(s.out_height, s.out_width) + "x" +
         std::to_string(s.out_channels) + " kernel " + pair(s.kernel_height, s.kernel_width) + " stride " +
         pair(s.stride_height, s.stride_width) + " dilation " + pair(s.dilation_height, s.dilation_width) + " pad " +
         pair(s.pad_top, s.pad_left) + " groups " + std::to_string(s.groups) + (s.is_transposed ? " transposed" : "");
}

// Sets the output size from the input size and the padding on all sides.
inline void fit_output(kernels::ConvShape& s, std::int64_t pad_bottom, std::int64_t pad_right) {
  const std::int64_t reach_y = (s.kernel_height - 1) * s.dilation_height + 1;
  const std::int64_t reach_x = (s.kernel_width - 1) * s.dilation_width + 1;
  if (s.is_transposed) {
    s.out_height = (s.in_height - 1) * s.stride_height + reach_y - s.pad_top - pad_bottom;
    s.out_width = (s.in_width - 1) * s.stride_width + reach_x - s.pad_left - pad_right;
  } else {
    s.out_height = (s.in_height + s.pad_top + pad_bottom - reach_y) / s.stride_height + 1;
    s.out_width = (s.in_width + s.pad_left + pad_right - reach_x) / s.stride_width + 1;
  }
}

// A square shape with the same padding on all sides.
inline kernels::ConvShape square(std::int64_t in, std::int64_t channels, std::int64_t outputs, std::int64_t kernel,
                                 std::int64_t stride, std::int64_t pad, std::int64_t groups = 1,
                                 std::int64_t dilation = 1, std::int64_t batch = 1) {
  kernels::ConvShape s;
  s.batch = batch;
  s.in_height = s.in_width = in;
  s.in_channels = channels;
  s.out_channels = outputs;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.dilation_height = s.dilation_width = dilation;
  s.pad_top = s.pad_left = pad;
  s.groups = groups;
  fit_output(s, pad, pad);
  return s;
}

// A random shape with at least one output pixel; channels are left to the caller.
inline kernels::ConvShape random_window(Random& random, bool may_transpose) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  for (;;) {
    kernels::ConvShape s;
    s.batch = pick(1, 2);
    s.in_height = pick(1, 12), s.in_width = pick(1, 12);
    s.kernel_height = pick(1, 4), s.kernel_width = pick(1, 4);
    s.stride_height = pick(1, 3), s.stride_width = pick(1, 3);
    s.dilation_height = pick(0, 3) == 0 ? 2 : 1, s.dilation_width = pick(0, 3) == 0 ? 2 : 1;
    s.pad_top = pick(0, 2), s.pad_left = pick(0, 2);
    s.is_transposed = may_transpose && pick(0, 3) == 0;
    fit_output(s, pick(0, 2), pick(0, 2));
    if (s.out_height >= 1 && s.out_width >= 1) return s;
  }
}

// Input coordinate that output `o` reads at tap `k`, or -1 for padding: a search over all of them.
inline std::int64_t input_of(bool is_transposed, std::int64_t o, std::int64_t k, std::int64_t stride,
                             std::int64_t dilation, std::int64_t pad, std::int64_t in) {
  for (std::int64_t i = 0; i < in; ++i) {
    // A transposed convolution spreads input i to the outputs i * stride + k * dilation - pad.
    if (is_transposed ? o == i * stride + k * dilation - pad : i == o * stride + k * dilation - pad) return i;
  }
  return -1;
}

}  // namespace ctk::test
