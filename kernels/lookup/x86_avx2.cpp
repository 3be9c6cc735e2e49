// lookup for AVX2: the table as sixteen shuffles of 16 entries, 32 codes at once.
//
// For the part h of the table, (x ^ 16 h) is below 16 exactly where x belongs to it. Adding 0x70 with saturation then
// keeps the shuffle's "give zero" bit clear there and sets it everywhere else, so the sixteen results can be or-ed.
#include "kernels/lookup/lookup.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

namespace ctk::kernels {
namespace {

inline __m256i map(const __m256i (&parts)[16], __m256i x) {
  const __m256i bias = _mm256_set1_epi8(0x70);
  __m256i y = _mm256_setzero_si256();
#pragma GCC unroll 16
  for (int h = 0; h < 16; ++h) {
    const __m256i in_part = _mm256_xor_si256(x, _mm256_set1_epi8(static_cast<char>(16 * h)));
    y = _mm256_or_si256(y, _mm256_shuffle_epi8(parts[h], _mm256_adds_epu8(in_part, bias)));
  }
  return y;
}

void lookup(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
  __m256i parts[16];
  for (int h = 0; h < 16; ++h) {
    parts[h] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * h)));
  }
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), map(parts, codes));
  }
  for (; i < count; ++i) y[i] = table[x[i]];
}

}  // namespace

const LookupRow lookup_x86_avx2 = {Isa::x86_avx2, "lookup_x86_avx2", lookup};

}  // namespace ctk::kernels

#endif
