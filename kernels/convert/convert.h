// convert: between float and codes, and between channel-first and channels-last. Rounding: core/quant_tensor.h
// (divide by the scale, clamp, nearest even).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct ConvertRow {
  Isa isa;
  const char* name;
  void (*quantize)(const float* x, float scale, std::uint8_t zero_point, std::uint8_t* y, std::size_t count);
  void (*dequantize)(const std::uint8_t* x, float scale, std::uint8_t zero_point, float* y, std::size_t count);
  // One image: [channels, pixels] <-> [pixels, channels].
  void (*to_channels_last_f32)(const float* x, float* y, std::size_t channels, std::size_t pixels);
  void (*to_channels_first_f32)(const float* x, float* y, std::size_t channels, std::size_t pixels);
  void (*to_channels_last_u8)(const std::uint8_t* x, std::uint8_t* y, std::size_t channels, std::size_t pixels);
  void (*to_channels_first_u8)(const std::uint8_t* x, std::uint8_t* y, std::size_t channels, std::size_t pixels);
};

#define CTK_KERNEL(symbol) extern const ConvertRow symbol;
#include "kernels/convert/kernels.def"
#undef CTK_KERNEL

std::span<const ConvertRow> convert_rows();

}  // namespace ctk::kernels
