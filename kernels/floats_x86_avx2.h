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
