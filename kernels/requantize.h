// The scalar form of the integer epilogue (kernels/epilogue.h): the reference every row's vector code must equal.
// Not for ISA files: an inline function emitted there could be picked by the linker for everybody.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/epilogue.h"

namespace ctk::kernels {

// Ties to even, as the default rounding mode has it. A NaN becomes `low`, as in the vector rows.
inline std::int32_t round_clamped(float t, float low, float high) {
  if (t > high) t = high;
  if (!(t > low)) t = low;
  return static_cast<std::int32_t>(std::lrint(t));
}

inline std::uint8_t requantize(const EpilogueInt& e, std::int32_t acc, float multiplier, std::uint8_t residual) {
  const std::int32_t zero = e.zero_point;
  float t = static_cast<float>(acc) * multiplier;
  if (e.residual.data != nullptr) {
    const std::int32_t mid = e.residual.mid_zero_point;
    const std::int32_t q1 = round_clamped(t, static_cast<float>(-mid), static_cast<float>(255 - mid));
    const std::int32_t r = std::int32_t{residual} - e.residual.residual_zero_point;
    t = static_cast<float>(q1) * e.residual.mid_ratio + static_cast<float>(r) * e.residual.residual_ratio;
  }
  return static_cast<std::uint8_t>(
      zero + round_clamped(t, static_cast<float>(e.low - zero), static_cast<float>(e.high - zero)));
}

// The order of the comparisons is that of vmaxps(low, t) and vminps(high, t): -0 stays -0 when low is 0.
inline float clamp_real(const EpilogueInt& e, std::int32_t acc, float multiplier) {
  float t = static_cast<float>(acc) * multiplier;
  t = e.low_f > t ? e.low_f : t;
  return e.high_f < t ? e.high_f : t;
}

// acc: bias included. Writes element (row, column) of c.
inline void store_scalar(const EpilogueInt& e, std::int32_t acc, std::size_t row, std::size_t column, void* c,
                         std::size_t c_stride) {
  const float multiplier = e.multiplier[column];
  if (e.to_float) {
    static_cast<float*>(c)[row * c_stride + column] = clamp_real(e, acc, multiplier);
    return;
  }
  const ResidualU8& r = e.residual;
  const std::uint8_t other = r.data != nullptr ? r.data[row * r.stride + column] : std::uint8_t{0};
  static_cast<std::uint8_t*>(c)[row * c_stride + column] = requantize(e, acc, multiplier, other);
}

// The same epilogue and output seen from (row, column) on.
inline EpilogueInt epilogue_from(EpilogueInt e, std::size_t row, std::size_t column) {
  e.bias += column;
  e.multiplier += column;
  if (e.residual.data != nullptr) e.residual.data += row * e.residual.stride + column;
  return e;
}

inline void* output_from(const EpilogueInt& e, void* c, std::size_t offset) {
  return static_cast<char*>(c) + offset * (e.to_float ? sizeof(float) : sizeof(std::uint8_t));
}

}  // namespace ctk::kernels
