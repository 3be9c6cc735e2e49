// Rows side by side: the loops over columns that depend on each other work on this many rows at once.
#pragma once

#include <cmath>
#include <cstddef>

// In front of a function that works on lanes: compiled for wider registers too, and taken where the host has them. No
// multiply-add is contracted, so both give the same bits.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
#define CTK_LANES __attribute__((target_clones("avx2", "default")))
#else
#define CTK_LANES
#endif

namespace ctk::quantization {

inline constexpr std::size_t kLanes = 16;
using Lanes = float[kLanes];

// Adding 1.5 * 2^23 leaves no room for a fraction: to nearest, ties to even. For values below 2^22, as levels are.
[[gnu::always_inline]] inline float round_level(float value, float low, float high) {
  constexpr float kRounder = 12582912.0f;
  value = value > low ? value : low;
  value = value < high ? value : high;
  return (value + kRounder) - kRounder;
}

// y[j] -= x * factors[j]
[[gnu::always_inline]] inline void subtract_product(Lanes* y, const Lanes& x, const float* factors, std::size_t count) {
  for (std::size_t j = 0; j < count; ++j) {
    const float factor = factors[j];
    for (std::size_t r = 0; r < kLanes; ++r) y[j][r] -= factor * x[r];
  }
}

[[gnu::always_inline]] inline bool is_zero(const Lanes& x) {
  float size = 0;
  for (std::size_t r = 0; r < kLanes; ++r) size += std::abs(x[r]);
  return size == 0;
}

}  // namespace ctk::quantization
