// Walking the taps of pooling windows that lie inside the image, for ISA sources: everything has internal linkage.
#pragma once

#include <cstdint>

#include "kernels/window.h"

namespace ctk::kernels {
namespace {

// The part of a window inside the image: taps (ky, kx) with ky, kx in these ranges.
struct Inside {
  std::int64_t ky_begin, ky_end, kx_begin, kx_end;
};

Inside inside_of(const ConvShape& s, std::int64_t oy, std::int64_t ox) {
  Inside w{0, s.kernel_height, 0, s.kernel_width};
  while (w.ky_begin < w.ky_end && window_row(s, oy, w.ky_begin) < 0) ++w.ky_begin;
  while (w.ky_end > w.ky_begin && window_row(s, oy, w.ky_end - 1) < 0) --w.ky_end;
  while (w.kx_begin < w.kx_end && window_column(s, ox, w.kx_begin) < 0) ++w.kx_begin;
  while (w.kx_end > w.kx_begin && window_column(s, ox, w.kx_end - 1) < 0) --w.kx_end;
  return w;
}

// Calls body(window, first channel of the window's first tap inside, output, oy, ox) for each output pixel.
template <class T, class Body>
inline void for_windows(const ConvShape& s, const T* x, T* y, std::int64_t row_begin, std::int64_t row_end,
                        const Body& body) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t image = row / s.out_height, oy = row % s.out_height;
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      const Inside w = inside_of(s, oy, ox);
      const std::int64_t iy = oy * s.stride_height - s.pad_top + w.ky_begin * s.dilation_height;
      const std::int64_t ix = ox * s.stride_width - s.pad_left + w.kx_begin * s.dilation_width;
      const T* first = x + ((image * s.in_height + iy) * s.in_width + ix) * s.in_channels;
      body(w, first, y + (row * s.out_width + ox) * s.in_channels, oy, ox);
    }
  }
}

// Steps in elements from one tap to the next.
struct Pitch {
  std::int64_t y, x;
};
inline Pitch pitch_of(const ConvShape& s) {
  return {s.dilation_height * s.in_width * s.in_channels, s.dilation_width * s.in_channels};
}

// Calls visit(pointer) for every tap, in order.
template <class T, class Visit>
inline void for_taps(const Inside& w, const Pitch& p, const T* first, const Visit& visit) {
  for (std::int64_t ky = w.ky_begin; ky < w.ky_end; ++ky, first += p.y) {
    const T* tap = first;
    for (std::int64_t kx = w.kx_begin; kx < w.kx_end; ++kx, tap += p.x) visit(tap);
  }
}

}  // namespace
}  // namespace ctk::kernels
