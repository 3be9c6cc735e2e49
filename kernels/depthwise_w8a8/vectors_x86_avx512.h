// One name for the same instruction on 64, 32 and 16 bytes, for sources of AVX-512 VNNI: blocks of channels are as wide
// as what is left of them. Everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

inline const __m128i* lane_at(const void* values, std::size_t index) {
  return static_cast<const __m128i*>(values) + index;
}

#define CTK_VECTOR(Name, prefix, bits, IntType, FloatType)                                                    \
  struct Name {                                                                                               \
    using Int = IntType;                                                                                      \
    using Float = FloatType;                                                                                  \
    static constexpr std::size_t kBytes = bits / 8, kLanes = bits / 128;                                      \
    static Int zero() { return prefix##_setzero_si##bits(); }                                                 \
    static Int load(const void* at) { return prefix##_loadu_si##bits(static_cast<const Int*>(at)); }          \
    static void store(void* at, Int a) { prefix##_storeu_si##bits(static_cast<Int*>(at), a); }                \
    static Int low8(Int a, Int b) { return prefix##_unpacklo_epi8(a, b); }                                    \
    static Int high8(Int a, Int b) { return prefix##_unpackhi_epi8(a, b); }                                   \
    static Int low16(Int a, Int b) { return prefix##_unpacklo_epi16(a, b); }                                  \
    static Int high16(Int a, Int b) { return prefix##_unpackhi_epi16(a, b); }                                 \
    static Int dot(Int sum, Int u8, Int s8) { return prefix##_dpbusd_epi32(sum, u8, s8); }                    \
    static Int rounded(Int sum, Float by) {                                                                   \
      return prefix##_cvtps_epi32(prefix##_mul_ps(prefix##_cvtepi32_ps(sum), by));                            \
    }                                                                                                         \
    static Int words(Int a, Int b) { return prefix##_packs_epi32(a, b); }                                     \
    static Int bytes(Int a, Int b) { return prefix##_packus_epi16(a, b); }                                    \
    static Int add_words(Int a, Int b) { return prefix##_adds_epi16(a, b); }                                  \
    static Int clamp(Int a, Int low, Int high) { return prefix##_min_epu8(high, prefix##_max_epu8(low, a)); } \
    static Int every_word(int value) { return prefix##_set1_epi16(static_cast<short>(value)); }               \
    static Int every_byte(int value) { return prefix##_set1_epi8(static_cast<char>(value)); }                 \
    /* Lane i: values 16 * i + 4 * part .. + 3 of 32 bits. */                                                 \
    static Int lanes(const void* values, std::size_t part);                                                   \
    static Float float_lanes(const void* values, std::size_t part) {                                          \
      return prefix##_castsi##bits##_ps(lanes(values, part));                                                 \
    }                                                                                                         \
  };

CTK_VECTOR(Zmm, _mm512, 512, __m512i, __m512)
CTK_VECTOR(Ymm, _mm256, 256, __m256i, __m256)
CTK_VECTOR(Xmm, _mm, 128, __m128i, __m128)
#undef CTK_VECTOR

inline __m128i Xmm::lanes(const void* values, std::size_t part) {
  return _mm_loadu_si128(lane_at(values, part));
}
inline __m256i Ymm::lanes(const void* values, std::size_t part) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(lane_at(values, part))),
                                 _mm_loadu_si128(lane_at(values, 4 + part)), 1);
}
inline __m512i Zmm::lanes(const void* values, std::size_t part) {
  const __m256i upper = Ymm::lanes(lane_at(values, 8), part);
  return _mm512_inserti64x4(_mm512_castsi256_si512(Ymm::lanes(values, part)), upper, 1);
}

}  // namespace
}  // namespace ctk::kernels
