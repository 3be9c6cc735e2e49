// What vector rows of depthwise_fp32 share: packing, and the walk over output pixels. The source that includes this
// gives kLanes, channels of a vector, before it, and after it the two functions declared below. Internal linkage.
//
// Packed weights: [taps][channels rounded up to kLanes], zeros at the end. Any kernel: one input pointer per tap (a row
// of zeros where the window reads padding). 3x3 windows that lie wholly inside the image take a path of their own,
// several pixels at once, so that a weight vector is loaded once for all of them.
#pragma once

#include <cstring>

#include "kernels/depthwise_fp32/depthwise_fp32.h"
#include "kernels/window.h"

namespace ctk::kernels {
namespace {

std::int64_t rounded(std::int64_t channels) {
  return (channels + kLanes - 1) / kLanes * kLanes;
}

std::size_t packed_bytes(const ConvShape& s) {
  return static_cast<std::size_t>(rounded(s.in_channels) * s.kernel_height * s.kernel_width) * sizeof(float);
}

void pack(const ConvShape& s, const float* weights, void* packed) {
  float* out = static_cast<float*>(packed);
  const std::int64_t taps = s.kernel_height * s.kernel_width;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t c = 0; c < rounded(s.in_channels); ++c) {
      *out++ = c < s.in_channels ? weights[c * taps + tap] : 0.0f;
    }
  }
}

// [channels] zeros, then one pointer per tap.
std::size_t scratch_bytes(const ConvShape& s) {
  const std::int64_t bytes = rounded(s.in_channels) * static_cast<std::int64_t>(sizeof(float)) +
                             s.kernel_height * s.kernel_width * static_cast<std::int64_t>(sizeof(const float*));
  return static_cast<std::size_t>((bytes + 63) / 64 * 64);
}

struct Step {
  const float* bias;      // [channels] or null
  const float* residual;  // of the first pixel, or null
  std::int64_t residual_stride;
  float low, high;
  std::int64_t channels;
};

// One pixel, any taps.
void run_pixel(const Step& t, const float* weights, const float* const* taps, std::int64_t tap_count, float* y);

// P neighbouring pixels of a 3x3 window inside the image, S columns of input from one to the next. x is the first
// pixel's first tap; row_size is the floats of an input row.
template <int P, int S>
void run_inside(const Step& t, const float* weights, const float* x, std::int64_t row_size, float* y);

void run(const ConvShape& s, const void* packed, const float* x, const EpilogueFloat& e, float* y,
         std::int64_t row_begin, std::int64_t row_end, void* scratch) {
  const float* weights = static_cast<const float*>(packed);
  const std::int64_t channels = s.in_channels;
  float* zeros = static_cast<float*>(scratch);
  const float** taps = reinterpret_cast<const float**>(zeros + rounded(channels));
  std::memset(zeros, 0, static_cast<std::size_t>(rounded(channels)) * sizeof(float));
  Step t{e.bias, nullptr, static_cast<std::int64_t>(e.residual_stride), e.low, e.high, channels};
  const std::int64_t stride = s.stride_width;
  const bool has_inside = s.kernel_height == 3 && s.kernel_width == 3 && s.dilation_height == 1 &&
                          s.dilation_width == 1 && !s.is_transposed && (stride == 1 || stride == 2);
  const std::int64_t row_size = s.in_width * channels;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t image = row / s.out_height, oy = row % s.out_height;
    const float* from = x + image * s.in_height * row_size;
    const std::int64_t top = oy * s.stride_height - s.pad_top;
    const bool is_row_inside = has_inside && top >= 0 && top + 3 <= s.in_height;
    for (std::int64_t ox = 0; ox < s.out_width;) {
      const std::int64_t pixel = row * s.out_width + ox;
      float* to = y + pixel * channels;
      if (e.residual != nullptr) t.residual = e.residual + pixel * t.residual_stride;
      const std::int64_t left = ox * stride - s.pad_left;
      if (is_row_inside && left >= 0 && left + 3 <= s.in_width) {
        const float* first = from + top * row_size + left * channels;
        const std::int64_t count = (s.in_width - 3 - left) / stride + 1;  // pixels from here on that lie inside
        const std::int64_t run_length = count < s.out_width - ox ? count : s.out_width - ox;
        if (run_length >= 4) {
          stride == 1 ? run_inside<4, 1>(t, weights, first, row_size, to)
                      : run_inside<4, 2>(t, weights, first, row_size, to);
          ox += 4;
        } else if (run_length >= 2) {
          stride == 1 ? run_inside<2, 1>(t, weights, first, row_size, to)
                      : run_inside<2, 2>(t, weights, first, row_size, to);
          ox += 2;
        } else {
          run_inside<1, 1>(t, weights, first, row_size, to);
          ox += 1;
        }
        continue;
      }
      std::int64_t tap = 0;
      for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
        const std::int64_t iy = window_row(s, oy, ky);
        for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
          const std::int64_t ix = window_column(s, ox, kx);
          taps[tap++] = iy >= 0 && ix >= 0 ? from + iy * row_size + ix * channels : zeros;
        }
      }
      run_pixel(t, weights, taps, tap, to);
      ox += 1;
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
