// eltwise: element-by-element kernels on flat arrays of equal length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

// q = zero_point + int(nearbyint(clamp(float(a - a_zero) * a_ratio + float(b - b_zero) * b_ratio,
//                                      low - zero_point, high - zero_point))); ratios are input scale / output scale.
struct AddU8 {
  std::uint8_t a_zero = 0, b_zero = 0, zero_point = 0;
  float a_ratio = 1.0f, b_ratio = 1.0f;
  std::uint8_t low = 0, high = 255;
};
// q = zero_point + int(nearbyint(clamp(float((a - a_zero) * (b - b_zero)) * ratio, ...))); ratio = a scale * b scale /
// output scale.
struct MulU8 {
  std::uint8_t a_zero = 0, b_zero = 0, zero_point = 0;
  float ratio = 1.0f;
  std::uint8_t low = 0, high = 255;
};

struct EltwiseRow {
  Isa isa;
  const char* name;
  // Outputs may be the inputs themselves.
  void (*add_u8)(const AddU8& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count);
  void (*mul_u8)(const MulU8& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count);
  void (*add_f32)(const float* a, const float* b, float low, float high, float* y, std::size_t count);
  void (*mul_f32)(const float* a, const float* b, float low, float high, float* y, std::size_t count);
  void (*clamp_f32)(const float* x, float low, float high, float* y, std::size_t count);
};

#define CTK_KERNEL(symbol) extern const EltwiseRow symbol;
#include "kernels/eltwise/kernels.def"
#undef CTK_KERNEL

std::span<const EltwiseRow> eltwise_rows();

}  // namespace ctk::kernels
