// The reference: direct loops; packed weights are the codes as given.
#include <cstring>

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(const ConvShape& s) {
  return static_cast<std::size_t>(s.in_channels * s.kernel_height * s.kernel_width);
}

void pack(const ConvShape& s, const std::int8_t* codes, void* packed) {
  std::memcpy(packed, codes, packed_bytes(s));
}

std::size_t scratch_bytes(const ConvShape&) {
  return 0;
}

// The input index that tap k of output o meets, or -1 (kernels/conv_shape.h).
std::int64_t source(std::int64_t o, std::int64_t k, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                    std::int64_t in, bool is_transposed) {
  std::int64_t i = o * stride - pad + k * dilation;
  if (is_transposed) {
    const std::int64_t u = o + pad - k * dilation;
    if (u < 0 || u % stride != 0) return -1;
    i = u / stride;
  }
  return i >= 0 && i < in ? i : -1;
}

void run(const ConvShape& s, const void* packed, const std::uint8_t* x, std::uint8_t x_zero_point,
         const EpilogueInt& epilogue, void* y, std::int64_t row_begin, std::int64_t row_end, void*) {
  const std::int64_t channels = s.in_channels, taps = s.kernel_height * s.kernel_width;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t image = row / s.out_height, oy = row % s.out_height;
    for (std::int64_t ox = 0; ox < s.out_width; ++ox) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int8_t* w = static_cast<const std::int8_t*>(packed) + c * taps;
        std::int32_t acc = epilogue.bias[c];
        for (std::int64_t ky = 0; ky < s.kernel_height; ++ky) {
          const std::int64_t iy =
              source(oy, ky, s.stride_height, s.dilation_height, s.pad_top, s.in_height, s.is_transposed);
          for (std::int64_t kx = 0; kx < s.kernel_width; ++kx, ++w) {
            const std::int64_t ix =
                source(ox, kx, s.stride_width, s.dilation_width, s.pad_left, s.in_width, s.is_transposed);
            const bool is_inside = iy >= 0 && ix >= 0;
            const std::uint8_t code =
                is_inside ? x[((image * s.in_height + iy) * s.in_width + ix) * channels + c] : x_zero_point;
            acc = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc) + static_cast<std::uint32_t>(code * *w));
          }
        }
        store_scalar(epilogue, acc, static_cast<std::size_t>(row * s.out_width + ox), static_cast<std::size_t>(c), y,
                     static_cast<std::size_t>(channels));
      }
    }
  }
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_scalar;
constinit const DepthwiseIntRow depthwise_w8a8_scalar{
    .isa = Isa::scalar,
    .name = "depthwise_w8a8_scalar",
    .packed_bytes = packed_bytes,
    .pack = pack,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels
