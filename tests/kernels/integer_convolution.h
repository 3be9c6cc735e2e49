// A convolution case and its direct loops, for conv_w8a8 and depthwise_w8a8.
#pragma once

#include "tests/kernels/integer_cases.h"

namespace ctk::kernels::test {

struct ConvCase {
  ConvShape shape;
  std::uint8_t zero_point = 0;
  std::vector<std::uint8_t> x;
  std::vector<std::int8_t> w;  // [out, in / groups, kernel height, kernel width]
  Epilogue epilogue;
};

// The input one tap of one output meets, or -1: straight from conv_shape.h.
inline std::int64_t source(const ConvShape& s, bool vertical, std::int64_t o, std::int64_t k) {
  const std::int64_t stride = vertical ? s.stride_height : s.stride_width;
  const std::int64_t dilation = vertical ? s.dilation_height : s.dilation_width;
  const std::int64_t pad = vertical ? s.pad_top : s.pad_left, in = vertical ? s.in_height : s.in_width;
  std::int64_t i = o * stride - pad + k * dilation;
  if (s.is_transposed) {
    const std::int64_t u = o + pad - k * dilation;
    if (u < 0 || u % stride != 0) return -1;
    i = u / stride;
  }
  return i < 0 || i >= in ? -1 : i;
}

inline std::vector<float> expected(const ConvCase& c) {
  const ConvShape& s = c.shape;
  std::vector<float> y;
  for (std::int64_t pixel = 0; pixel < s.pixels(); ++pixel) {
    const std::int64_t ox = pixel % s.out_width, oy = pixel / s.out_width % s.out_height;
    const std::int64_t image = pixel / (s.out_width * s.out_height);
    for (std::int64_t o = 0; o < s.out_channels; ++o) {
      std::int64_t sum = 0;
      for (std::int64_t ch = 0; ch < s.channels_per_group(); ++ch) {
        const std::int64_t in_channel = o / s.outputs_per_group() * s.channels_per_group() + ch;
        for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
          for (std::int64_t kx = 0; kx < s.kernel_width; ++kx) {
            const std::int64_t iy = source(s, true, oy, ky), ix = source(s, false, ox, kx);
            const bool inside = iy >= 0 && ix >= 0;
            const std::int64_t at = ((image * s.in_height + iy) * s.in_width + ix) * s.in_channels + in_channel;
            const std::int64_t weight =
                ((o * s.channels_per_group() + ch) * s.kernel_height + ky) * s.kernel_width + kx;
            sum += std::int64_t{inside ? c.x[static_cast<std::size_t>(at)] : c.zero_point} *
                   c.w[static_cast<std::size_t>(weight)];
          }
        }
      }
      y.push_back(expected_output(c.epilogue, sum, static_cast<std::size_t>(pixel), static_cast<std::size_t>(o)));
    }
  }
  return y;
}

// A small layer of any geometry; pads at the far sides follow from complete().
inline void fill_geometry(ConvShape& s, Random& random) {
  s.in_height = uniform(random, 1, 9);
  s.in_width = uniform(random, 1, 9);
  s.groups = uniform(random, 0, 3) == 0 ? uniform(random, 2, 3) : 1;
  s.in_channels = s.groups * uniform(random, 1, 9);
  s.out_channels = s.groups * uniform(random, 1, s.groups == 1 ? 36 : 10);
  s.kernel_height = uniform(random, 1, 3);
  s.kernel_width = uniform(random, 1, 3);
  s.stride_height = uniform(random, 1, 3);
  s.stride_width = uniform(random, 1, 3);
  s.dilation_height = uniform(random, 1, 2);
  s.dilation_width = uniform(random, 1, 2);
  s.is_transposed = uniform(random, 0, 4) == 0;
  s.pad_top = uniform(random, 0, 2);
  s.pad_left = uniform(random, 0, 2);
}

// Fills in output size, data and epilogue; false when the shape has no output.
inline bool complete(ConvCase& c, Random& random, std::int64_t pad_bottom, std::int64_t pad_right, int low, int high) {
  ConvShape& s = c.shape;
  const auto out = [&](std::int64_t in, std::int64_t k, std::int64_t stride, std::int64_t dilation, std::int64_t pads) {
    const std::int64_t reach = dilation * (k - 1) + 1;
    return s.is_transposed           ? (in - 1) * stride + reach - pads
           : (in + pads - reach) < 0 ? 0
                                     : (in + pads - reach) / stride + 1;
  };
  s.out_height = out(s.in_height, s.kernel_height, s.stride_height, s.dilation_height, s.pad_top + pad_bottom);
  s.out_width = out(s.in_width, s.kernel_width, s.stride_width, s.dilation_width, s.pad_left + pad_right);
  if (s.out_height <= 0 || s.out_width <= 0) return false;
  c.x = random_codes(random, static_cast<std::size_t>(s.batch * s.in_height * s.in_width * s.in_channels));
  c.w = random_weights(random, static_cast<std::size_t>(s.out_channels * s.reduction()), low, high);
  c.epilogue = random_epilogue(random, static_cast<std::size_t>(s.pixels()), static_cast<std::size_t>(s.out_channels),
                               static_cast<std::size_t>(s.reduction()));
  return true;
}

inline std::string text(const ConvShape& s) {
  std::string t;
  for (std::int64_t v : {s.batch, s.in_height, s.in_width, s.in_channels, s.out_height, s.out_width, s.out_channels,
                         s.kernel_height, s.kernel_width, s.stride_height, s.stride_width, s.dilation_height,
                         s.dilation_width, s.pad_top, s.pad_left, s.groups}) {
    t += std::to_string(v) + " ";
  }
  return t + (s.is_transposed ? "transposed" : "");
}

}  // namespace ctk::kernels::test
