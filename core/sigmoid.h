// 1 / (1 + exp(-x)) without branches, so that loops over it become vector code; the same bits wherever it is used.
//
// exp(-|x|) = 2^n * exp(r): n nearest to -|x| log2 e by adding 1.5 * 2^23, r = -|x| - n ln 2 in two parts, exp(r) by
// Cephes' polynomial (S. Moshier), each product and sum rounded. Within 3 units in the last place; 0 below -87, where
// float32 has no normal number left. NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace ctk {

inline float sigmoid(float x) {
  constexpr float kShift = 12582912.0f, kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr std::uint32_t kMost = std::bit_cast<std::uint32_t>(87.0f), kInfinity = 0x7f800000u;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // All ones where the condition holds: choices between floats would be branches to the compiler.
  const std::uint32_t is_far = (magnitude > kMost ? ~0u : 0u) & (magnitude > kInfinity ? 0u : ~0u);
  const std::uint32_t is_negative = 0u - (bits >> 31);
  const float a = -std::bit_cast<float>((magnitude & ~is_far) | (kMost & is_far));
  const float shifted = a * kLog2E + kShift;
  const float n = shifted - kShift;
  const float r = (a - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
  const std::uint32_t e = std::bit_cast<std::uint32_t>(p * power) & ~is_far;
  const std::uint32_t top = (e & is_negative) | (std::bit_cast<std::uint32_t>(1.0f) & ~is_negative);
  return std::bit_cast<float>(top) / (1.0f + std::bit_cast<float>(e));
}

}  // namespace ctk
