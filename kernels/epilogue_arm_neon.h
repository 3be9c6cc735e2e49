// The integer epilogue on 16 columns of one row, for sources of ARM's vector sets. Everything has internal linkage: no
// other object may end up with this code.
//
// Limits: vmaxnm and vminnm take the number where one side is NaN, so a NaN becomes the limit met first, `low`; floats
// that must keep a NaN, or a -0 beside a limit of 0, are compared and selected instead.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/epilogue.h"

// Unrolls the loop it stands before; a tile of registers needs it.
#define CTK_UNROLL _Pragma("GCC unroll 8")

namespace ctk::kernels {
namespace {

// What is the same for every element of a product.
struct Finish16 {
  float32x4_t low, high;          // [0, 255] around zero_point, or of the float output
  float32x4_t mid_low, mid_high;  // the same around mid_zero_point
  float32x4_t mid_ratio, residual_ratio;
  uint8x8_t residual_zero;
  int16x8_t zero;
};

inline Finish16 finish16_of(const EpilogueInt& e) {
  const int zero = e.zero_point, mid = e.residual.mid_zero_point;
  Finish16 f;
  f.low = vdupq_n_f32(e.to_float ? e.low_f : static_cast<float>(e.low - zero));
  f.high = vdupq_n_f32(e.to_float ? e.high_f : static_cast<float>(e.high - zero));
  f.mid_low = vdupq_n_f32(static_cast<float>(-mid));
  f.mid_high = vdupq_n_f32(static_cast<float>(255 - mid));
  f.mid_ratio = vdupq_n_f32(e.residual.mid_ratio);
  f.residual_ratio = vdupq_n_f32(e.residual.residual_ratio);
  f.residual_zero = vdup_n_u8(e.residual.residual_zero_point);
  f.zero = vdupq_n_s16(static_cast<std::int16_t>(zero));
  return f;
}

// low where it is above t, high where that is above the limit; a NaN stays.
inline float32x4_t clamp_real(float32x4_t t, float32x4_t low, float32x4_t high) {
  t = vbslq_f32(vcgtq_f32(low, t), low, t);
  return vbslq_f32(vcltq_f32(high, t), high, t);
}

// Clamped and rounded to nearest even; a NaN becomes low.
inline int32x4_t round_clamped(float32x4_t t, float32x4_t low, float32x4_t high) {
  return vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(t, low), high));
}

// r: the stored codes less their zero point.
inline float32x4_t add_residual(const Finish16& f, float32x4_t t, int16x4_t r) {
  const float32x4_t q1 = vcvtq_f32_s32(round_clamped(t, f.mid_low, f.mid_high));
  return vaddq_f32(vmulq_f32(q1, f.mid_ratio), vmulq_f32(vcvtq_f32_s32(vmovl_s16(r)), f.residual_ratio));
}

// Sums times their multipliers, to float.
inline void finish16_f32(const Finish16& f, const int32x4_t (&acc)[4], const float32x4_t (&multiplier)[4], float* y) {
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) {
    vst1q_f32(y + 4 * v, clamp_real(vmulq_f32(vcvtq_f32_s32(acc[v]), multiplier[v]), f.low, f.high));
  }
}

// The same to uint8; residual: 16 codes or null.
inline uint8x16_t finish16_u8(const Finish16& f, const int32x4_t (&acc)[4], const float32x4_t (&multiplier)[4],
                              const std::uint8_t* residual) {
  float32x4_t t[4];
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) t[v] = vmulq_f32(vcvtq_f32_s32(acc[v]), multiplier[v]);
  if (residual != nullptr) {
    const uint8x16_t codes = vld1q_u8(residual);
    const int16x8_t r0 = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(codes), f.residual_zero));
    const int16x8_t r1 = vreinterpretq_s16_u16(vsubl_u8(vget_high_u8(codes), f.residual_zero));
    t[0] = add_residual(f, t[0], vget_low_s16(r0));
    t[1] = add_residual(f, t[1], vget_high_s16(r0));
    t[2] = add_residual(f, t[2], vget_low_s16(r1));
    t[3] = add_residual(f, t[3], vget_high_s16(r1));
  }
  int16x4_t q[4];
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) q[v] = vmovn_s32(round_clamped(t[v], f.low, f.high));
  return vcombine_u8(vqmovun_s16(vaddq_s16(vcombine_s16(q[0], q[1]), f.zero)),
                     vqmovun_s16(vaddq_s16(vcombine_s16(q[2], q[3]), f.zero)));
}

// The last 1..15 columns go through a buffer, so that nothing past them is read or written.
inline void finish16_tail(const Finish16& f, const EpilogueInt& e, const int32x4_t (&acc)[4],
                          const float32x4_t (&multiplier)[4], const std::uint8_t* residual, std::size_t columns,
                          void* y) {
  if (e.to_float) {
    float buffer[16];
    finish16_f32(f, acc, multiplier, buffer);
    std::memcpy(y, buffer, columns * sizeof(float));
    return;
  }
  std::uint8_t buffer[16] = {};
  if (residual != nullptr) std::memcpy(buffer, residual, columns);
  vst1q_u8(buffer, finish16_u8(f, acc, multiplier, residual != nullptr ? buffer : nullptr));
  std::memcpy(y, buffer, columns);
}

// Element (row, column..column+15) of a product's output; `columns` (1..16) of them exist.
inline void store16(const Finish16& f, const EpilogueInt& e, const int32x4_t (&acc)[4],
                    const float32x4_t (&multiplier)[4], std::size_t row, std::size_t column, std::size_t columns,
                    void* c, std::size_t c_stride) {
  const std::uint8_t* residual =
      e.residual.data != nullptr ? e.residual.data + row * e.residual.stride + column : nullptr;
  const std::size_t at = row * c_stride + column;
  void* y = e.to_float ? static_cast<void*>(static_cast<float*>(c) + at) : static_cast<std::uint8_t*>(c) + at;
  if (columns < 16) {
    finish16_tail(f, e, acc, multiplier, residual, columns, y);
  } else if (e.to_float) {
    finish16_f32(f, acc, multiplier, static_cast<float*>(y));
  } else {
    vst1q_u8(static_cast<std::uint8_t*>(y), finish16_u8(f, acc, multiplier, residual));
  }
}

}  // namespace
}  // namespace ctk::kernels
