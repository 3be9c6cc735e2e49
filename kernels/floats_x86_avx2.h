// Eight floats at a time: what float parts of several kinds share. Sources with AVX2 only; internal linkage.
#pragma once

#include <cstddef>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

// a * b + c, rounded once.
[[gnu::always_inline]] inline __m256 fused(__m256 a, __m256 b, __m256 c) {
#if defined(CTK_USE_SIMDE)  // the emulation rounds twice
  float x[8], y[8], z[8];
  _mm256_storeu_ps(x, a);
  _mm256_storeu_ps(y, b);
  _mm256_storeu_ps(z, c);
  for (std::size_t i = 0; i < 8; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return _mm256_loadu_ps(z);
#else
  return _mm256_fmadd_ps(a, b, c);
#endif
}

// All bits of the first `count` lanes, for masked loads and stores.
inline __m256i mask_of(std::size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// The same eight in double.
struct Doubles {
  __m256d low, high;
};

inline Doubles doubles_of(__m256 x) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

inline Doubles add(const Doubles& a, const Doubles& b) {
  return {_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}

inline void store(double* to, const Doubles& values) {
  _mm256_storeu_pd(to, values.low);
  _mm256_storeu_pd(to + 4, values.high);
}

// Sum of eight lanes, the first one first.
inline double in_order(const double* lanes) {
  double sum = 0.0;
  for (int i = 0; i < 8; ++i) sum += lanes[i];
  return sum;
}

inline double in_order(const Doubles& values) {
  double lanes[8];
  store(lanes, values);
  return in_order(lanes);
}

inline __m256 load_at_most_8(const float* from, std::size_t count) {
  if (count >= 8) return _mm256_loadu_ps(from);
  alignas(32) float buffer[8] = {};
  for (std::size_t i = 0; i < count; ++i) buffer[i] = from[i];
  return _mm256_load_ps(buffer);
}

inline void store_at_most_8(float* to, std::size_t count, __m256 values) {
  if (count >= 8) {
    _mm256_storeu_ps(to, values);
    return;
  }
  alignas(32) float buffer[8];
  _mm256_store_ps(buffer, values);
  for (std::size_t i = 0; i < count; ++i) to[i] = buffer[i];
}

}  // namespace
}  // namespace ctk::kernels
