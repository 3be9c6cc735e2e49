// exp(a) for a <= 0 without branches, so that loops over it become vector code; the same bits wherever it is used.
//
// exp(a) = 2^n * exp(r): n nearest to a log2 e by adding 1.5 * 2^23, r = a - n ln 2 in two parts, exp(r) by Cephes'
// polynomial (S. Moshier), each product and sum rounded. Within 3 units in the last place; 0 below -87, where float32
// has no normal number left. NaN stays NaN. The sign of `a` is taken as negative.
#pragma once

#include <bit>
#include <cstdint>

namespace ctk {

inline float exp_negative(float of) {
  constexpr float kShift = 12582912.0f, kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr std::uint32_t kMost = std::bit_cast<std::uint32_t>(87.0f), kInfinity = 0x7f800000u;
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(of) & 0x7fffffffu;
  // All ones where the condition holds: choices between floats would be branches to the compiler.
  const std::uint32_t is_far = (magnitude > kMost ? ~0u : 0u) & (magnitude > kInfinity ? 0u : ~0u);
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
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p * power) & ~is_far);
}

}  // namespace ctk
