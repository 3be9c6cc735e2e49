// Where a convolution's outputs read along one axis. Outputs [o, o + count) read a strip of span(count) staged
// positions; source() tells which input stands at each, or none for padding and for the gaps of a transposed
// convolution.
#pragma once

#include <cstdint>

#include "kernels/conv_shape.h"

namespace ctk::kernels {

struct WindowAxis {
  std::int64_t in = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
  bool is_transposed = false;

  // A 1-tap window stages only what its stride meets.
  bool is_sampled() const { return !is_transposed && kernel == 1; }
  std::int64_t step() const { return is_transposed || is_sampled() ? 1 : stride; }  // staged positions per output
  std::int64_t span(std::int64_t count) const { return (count - 1) * step() + (kernel - 1) * dilation + 1; }
  std::int64_t tap(std::int64_t k) const { return (is_transposed ? kernel - 1 - k : k) * dilation; }

  std::int64_t source(std::int64_t output, std::int64_t position) const {  // -1: none
    std::int64_t i = 0;
    if (is_transposed) {
      const std::int64_t u = output + pad - (kernel - 1) * dilation + position;
      if (u < 0 || u % stride != 0) return -1;
      i = u / stride;
    } else {
      i = output * stride - pad + position * (is_sampled() ? stride : 1);
    }
    return i >= 0 && i < in ? i : -1;
  }
};

inline WindowAxis height_axis(const ConvShape& s) {
  return {s.in_height, s.kernel_height, s.stride_height, s.dilation_height, s.pad_top, s.is_transposed};
}
inline WindowAxis width_axis(const ConvShape& s) {
  return {s.in_width, s.kernel_width, s.stride_width, s.dilation_width, s.pad_left, s.is_transposed};
}

}  // namespace ctk::kernels
