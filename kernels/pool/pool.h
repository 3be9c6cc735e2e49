// pool: max and average pooling on NHWC. Averages of codes: exact int32 sum s of (q - zero_in) over the n taps inside,
// then q = zero_out + int(nearbyint(clamp(float32(s) * ratio / float32(n), ...))) with ratio = input scale / output
// scale; the product is rounded before the division. n counts the padding too when count_include_pad.
#pragma once

#include <span>

#include "core/cpu_isa.h"
#include "kernels/conv_shape.h"

namespace ctk::kernels {

struct AverageU8 {
  std::uint8_t in_zero = 0, zero_point = 0;
  float ratio = 1.0f;
  std::uint8_t low = 0, high = 255;
};

struct PoolRow {
  Isa isa;
  const char* name;
  // shape.in_channels == shape.out_channels; rows [row_begin, row_end) of batch * out_height.
  void (*max_u8)(const ConvShape& shape, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end);
  void (*max_f32)(const ConvShape& shape, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end);
  // include_pad_height/width: extent to which padding counts (see pool.cpp); 0: padding does not count.
  void (*average_u8)(const ConvShape& shape, bool count_include_pad, const AverageU8& rule, const std::uint8_t* x,
                     std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end);
  void (*average_f32)(const ConvShape& shape, bool count_include_pad, const float* x, float* y, std::int64_t row_begin,
                      std::int64_t row_end);
};

std::span<const PoolRow> pool_rows();

}  // namespace ctk::kernels
