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
  void (*max_u8)(const ConvShape& shape, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin,
                 std::int64_t row_end);
  void (*max_f32)(const ConvShape& shape, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end);
  void (*average_u8)(const ConvShape& shape, bool count_include_pad, const AverageU8& rule, const std::uint8_t* x,
                     std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end);
  void (*average_f32)(const ConvShape& shape, bool count_include_pad, const float* x, float* y, std::int64_t row_begin,
                      std::int64_t row_end);
};

#define CTK_KERNEL(symbol) extern const PoolRow symbol;
#include "kernels/pool/kernels.def"
#undef CTK_KERNEL

std::span<const PoolRow> pool_rows();

// The n of an average at output (oy, ox); what counts is told at the top of pool.cpp. At least 1.
std::int64_t pool_divisor(const ConvShape& shape, bool count_include_pad, std::int64_t oy, std::int64_t ox);

}  // namespace ctk::kernels
