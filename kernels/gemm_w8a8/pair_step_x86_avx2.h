// What products on int16 share, for AVX2 sources: staging and the inner step. Internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

inline void widen(const std::uint8_t* x, std::size_t count, void* staged) {
  std::int16_t* out = static_cast<std::int16_t*>(staged);
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_cvtepu8_epi16(codes));
  }
  for (; i + 8 <= count; i += 8) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm_cvtepu8_epi16(codes));
  }
  for (; i < count; ++i) out[i] = x[i];
}

// sum0 += madd(x, w0), sum1 += madd(x, w1), x: the pair at `at` in every lane. The twelve sums of a tile, two weights
// and two temporaries fill the registers to the last; written as intrinsics, GCC 12 may reorder them and spill.
inline void add_pair(__m256i& sum0, __m256i& sum1, const char* at, __m256i w0, __m256i w1) {
  __m256i x, product;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddwd %[w0], %[x], %[product]\n\t"
      "vpmaddwd %[w1], %[x], %[x]\n\t"
      "vpaddd %[product], %[sum0], %[sum0]\n\t"
      "vpaddd %[x], %[sum1], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
      : [at] "m"(*reinterpret_cast<const char(*)[sizeof(std::int32_t)]>(at)), [w0] "x"(w0), [w1] "x"(w1));
}

// The same for eight columns.
inline void add_pair(__m256i& sum, const char* at, __m256i w) {
  __m256i x;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddwd %[w], %[x], %[x]\n\t"
      "vpaddd %[x], %[sum], %[sum]"
      : [sum] "+x"(sum), [x] "=&x"(x)
      : [at] "m"(*reinterpret_cast<const char(*)[sizeof(std::int32_t)]>(at)), [w] "x"(w));
}

}  // namespace
}  // namespace ctk::kernels
