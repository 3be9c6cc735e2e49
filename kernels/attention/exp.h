// The constants of exp() as attention.h states it. Every row does the same operations on them.
#pragma once

namespace ctk::kernels {

inline constexpr float kExpLow = -87.0f;  // below: 0. exp(-87) = 1.6e-38 is still a normal number
inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts; n times the first is exact for |n| < 2^15.
inline constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
// exp(r) ~ 1 + r + r^2 (c5 + r (c4 + r (c3 + r (c2 + r (c1 + r c0))))), |r| <= ln 2 / 2: Cephes' expf (S. Moshier).
inline constexpr float kExpC0 = 1.9875691500e-4f, kExpC1 = 1.3981999507e-3f, kExpC2 = 8.3334519073e-3f,
                       kExpC3 = 4.1665795894e-2f, kExpC4 = 1.6666665459e-1f, kExpC5 = 5.0000001201e-1f;

}  // namespace ctk::kernels
