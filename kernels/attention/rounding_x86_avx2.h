// Rounding to integers: tokens for the cache, queries and weights for products with it. Sources with AVX2 only;
// internal linkage.
#pragma once

#include "kernels/attention/lines_x86_avx2.h"

namespace ctk::kernels {
namespace {

struct Rounding {
  float step, inverse;  // inverse 0: all codes are 0
};

// The bits of magnitudes are in the order of the numbers, infinity and NaN above all.
inline __m256i magnitude_bits(__m256 x) {
  return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

inline Rounding rounding_of(__m256i top_bits, float most) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(top_bits), _mm256_extracti128_si256(top_bits, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  if (_mm_cvtsi128_si32(m) >= 0x7f800000) return {__builtin_nanf(""), 0.0f};
  const float top = _mm_cvtss_f32(_mm_castsi128_ps(m));
  if (top < 0x1p-100f) return {0.0f, 0.0f};
  return {top / most, most / top};
}

inline Rounding rounding_of(const float* x, std::size_t count, float most) {
  __m256i top = _mm256_setzero_si256();
  for (std::size_t i = 0; i < count; i += 8) {
    top = _mm256_max_epi32(top, magnitude_bits(load_at_most_8(x + i, count - i)));
  }
  return rounding_of(top, most);
}

inline __m256i rounded(__m256 x, __m256 inverse) {
  const __m256 is_zero = _mm256_cmp_ps(inverse, _mm256_setzero_ps(), _CMP_EQ_OQ);  // x may be infinite then
  return _mm256_cvtps_epi32(_mm256_andnot_ps(is_zero, _mm256_mul_ps(x, inverse)));
}

// 16 integers, saturated to 16 bits.
inline __m256i packed_16(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

// A query, zeros to the pitch. Gives the step of its codes.
inline float round_query(const float* q, std::size_t size, std::size_t pitch, std::int16_t* codes) {
  const Rounding rounding = rounding_of(q, size, 32767.0f);
  const __m256 inverse = _mm256_set1_ps(rounding.inverse);
  for (std::size_t d = 0; d < size; d += 8) {
    const __m256i eight = packed_16(rounded(load_at_most_8(q + d, size - d), inverse), _mm256_setzero_si256());
    const __m128i words = _mm256_castsi256_si128(eight);
    if (d + 8 <= pitch) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + d), words);
      continue;
    }
    alignas(16) std::int16_t buffer[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(buffer), words);
    for (std::size_t i = 0; d + i < pitch; ++i) codes[d + i] = buffer[i];
  }
  return rounding.step;
}

// p [count], zeros to the end of the block of 16, times the values' scales -> codes up to there. Gives their step.
inline float round_weights(std::size_t count, const float* p, const float* value_scales, std::int16_t* codes) {
  alignas(32) float w[kChunk];
  const std::size_t padded = (count + kBlock - 1) / kBlock * kBlock;
  __m256i top = _mm256_setzero_si256();
  for (std::size_t i = 0; i < padded; i += 8) {
    // Scales of tokens not appended yet may be anything.
    const __m256 weight =
        _mm256_mul_ps(_mm256_load_ps(p + i), load_at_most_8(value_scales + i, i < count ? count - i : 0));
    _mm256_store_ps(w + i, weight);
    top = _mm256_max_epi32(top, magnitude_bits(weight));
  }
  const Rounding rounding = rounding_of(top, 32767.0f);
  const __m256 inverse = _mm256_set1_ps(rounding.inverse);
  for (std::size_t i = 0; i < padded; i += kBlock) {
    const __m256i low = rounded(_mm256_load_ps(w + i), inverse), high = rounded(_mm256_load_ps(w + i + 8), inverse);
    _mm256_store_si256(reinterpret_cast<__m256i*>(codes + i), packed_16(low, high));
  }
  return rounding.step;
}

}  // namespace
}  // namespace ctk::kernels
