// 1 / (1 + exp(-x)) without branches, so that loops over it become vector code; the same bits wherever it is used.
//
// exp(-|x|) = 2^n * exp(r): n nearest to -|x| log2 e by adding 1.5 * 2^23, r = -|x| - n ln 2 in two parts, exp(r) by
// Cephes' polynomial (S. Moshier), each product and sum rounded. Within 3 units in the last place; 0 below -87, where
// float32 has no normal number left. NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace ctk {

inline float sigmoid(float x) {
  constexpr float kLow = -87.0f, kShift = 12582912.0f, kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  const float a = -std::fabs(x);
  const float held = a < kLow ? kLow : a;
  const float shifted = held * kLog2E + kShift;
  const float n = shifted - kShift;
  const float r = (held - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
  const float e = a < kLow ? 0.0f : p * power;
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

}  // namespace ctk
