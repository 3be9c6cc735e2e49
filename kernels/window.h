// The one place that says which input coordinate a window reads.
#pragma once

#include <cstdint>

#include "kernels/conv_shape.h"

namespace ctk::kernels {

// Internal linkage on purpose: files compiled for an instruction set may not share functions with other files, or the
// linker could hand a scalar caller the vector build.

// Input row that output row `o` meets at kernel row `k`, or -1 where it reads padding.
[[maybe_unused]] static inline std::int64_t window_row(const ConvShape& s, std::int64_t o, std::int64_t k) {
  std::int64_t i = o * s.stride_height + k * s.dilation_height - s.pad_top;
  if (s.is_transposed) {
    i = o + s.pad_top - k * s.dilation_height;
    if (i < 0 || i % s.stride_height != 0) return -1;
    i /= s.stride_height;
  }
  return i >= 0 && i < s.in_height ? i : -1;
}

// The same for columns.
[[maybe_unused]] static inline std::int64_t window_column(const ConvShape& s, std::int64_t o, std::int64_t k) {
  std::int64_t i = o * s.stride_width + k * s.dilation_width - s.pad_left;
  if (s.is_transposed) {
    i = o + s.pad_left - k * s.dilation_width;
    if (i < 0 || i % s.stride_width != 0) return -1;
    i /= s.stride_width;
  }
  return i >= 0 && i < s.in_width ? i : -1;
}

}  // namespace ctk::kernels
