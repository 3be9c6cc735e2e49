// pool: scalar reference and table of rows.
//
// Windows. Maximum: over the taps inside the image; a window with none gives the least value there is (-inf, code 0).
// Average: over the n taps inside the image, or with count_include_pad over the n taps inside the image enlarged by
// pad_top, pad_left, pad_bottom and pad_right: taps that a rounded-up output size (ceil_mode) pushes past even that do
// not count. Where no tap counts, n is taken as 1. Float sums run over the taps in order, then one division.
// Maxima ignore NaN.
#include "kernels/pool/pool.h"

#include <cmath>
#include <limits>

#include "kernels/window.h"

namespace ctk::kernels {
namespace {

// Calls visit(first channel of the tap) for every tap of the window at (row, ox) inside the image, in order.
template <class T, class Visit>
void for_taps(const ConvShape& s, const T* x, std::int64_t row, std::int64_t ox, Visit visit) {
  const std::int64_t image = row / s.out_height, oy = row % s.out_height;
  for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
    const std::int64_t iy = window_row(s, oy, ky);
    if (iy < 0) continue;
    for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
      const std::int64_t ix = window_column(s, ox, kx);
      if (ix >= 0) visit(x + ((image * s.in_height + iy) * s.in_width + ix) * s.in_channels);
    }
  }
}

template <class T>
void max_of(const ConvShape& s, T least, const T* x, T* y, std::int64_t row_begin, std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      T* out = y + (row * s.out_width + ox) * s.in_channels;
      for (std::int64_t c = 0; c < s.in_channels; ++c) {
        T best = least;
        for_taps(s, x, row, ox, [&](const T* tap) { best = tap[c] > best ? tap[c] : best; });
        out[c] = best;
      }
    }
  }
}

void max_u8(const ConvShape& s, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  max_of<std::uint8_t>(s, 0, x, y, row_begin, row_end);
}

void max_f32(const ConvShape& s, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  max_of<float>(s, -std::numeric_limits<float>::infinity(), x, y, row_begin, row_end);
}

void average_u8(const ConvShape& s, bool count_include_pad, const AverageU8& rule, const std::uint8_t* x,
                std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  const float least = static_cast<float>(rule.low - rule.zero_point);
  const float most = static_cast<float>(rule.high - rule.zero_point);
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      const float n = static_cast<float>(pool_divisor(s, count_include_pad, row % s.out_height, ox));
      std::uint8_t* out = y + (row * s.out_width + ox) * s.in_channels;
      for (std::int64_t c = 0; c < s.in_channels; ++c) {
        std::int32_t sum = 0;
        for_taps(s, x, row, ox, [&](const std::uint8_t* tap) { sum += tap[c] - rule.in_zero; });
        float t = static_cast<float>(sum) * rule.ratio / n;
        t = t > least ? t : least;
        t = t < most ? t : most;
        out[c] = static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(t)) + rule.zero_point);
      }
    }
  }
}

void average_f32(const ConvShape& s, bool count_include_pad, const float* x, float* y, std::int64_t row_begin,
                 std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      const float n = static_cast<float>(pool_divisor(s, count_include_pad, row % s.out_height, ox));
      float* out = y + (row * s.out_width + ox) * s.in_channels;
      for (std::int64_t c = 0; c < s.in_channels; ++c) {
        float sum = 0.0f;
        for_taps(s, x, row, ox, [&](const float* tap) { sum += tap[c]; });
        out[c] = sum / n;
      }
    }
  }
}

// Taps at `origin + k * dilation` that lie in [-pad_before, in + pad_after).
std::int64_t taps_within(std::int64_t origin, std::int64_t kernel, std::int64_t dilation, std::int64_t before,
                         std::int64_t size, std::int64_t after) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const std::int64_t i = origin + k * dilation;
    if (i >= -before && i < size + after) ++count;
  }
  return count;
}

}  // namespace

std::int64_t pool_divisor(const ConvShape& s, bool count_include_pad, std::int64_t oy, std::int64_t ox) {
  const bool pad = count_include_pad;
  const std::int64_t rows = taps_within(oy * s.stride_height - s.pad_top, s.kernel_height, s.dilation_height,
                                        pad ? s.pad_top : 0, s.in_height, pad ? s.pad_bottom : 0);
  const std::int64_t columns = taps_within(ox * s.stride_width - s.pad_left, s.kernel_width, s.dilation_width,
                                           pad ? s.pad_left : 0, s.in_width, pad ? s.pad_right : 0);
  return rows * columns > 0 ? rows * columns : 1;
}

const PoolRow pool_scalar = {Isa::scalar, "pool_scalar", max_u8, max_f32, average_u8, average_f32};

std::span<const PoolRow> pool_rows() {
  static const PoolRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/pool/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
