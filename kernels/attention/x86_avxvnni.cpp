// attention for AVX-VNNI: as AVX2's, but pairs of int8 caches are multiplied and added in one step (vpdpwssd).
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include <cstdint>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Pairs {
#if defined(CTK_USE_SIMDE)
  static __m256i add(__m256i sum, __m256i a, __m256i pair) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, pair));  // it has no vpdpwssd
  }

  static void add_at(__m256i& sum0, __m256i& sum1, __m256i a0, __m256i a1, const std::int16_t* at) {
    std::int32_t pair;
    __builtin_memcpy(&pair, at, sizeof(pair));
    sum0 = add(sum0, a0, _mm256_set1_epi32(pair));
    sum1 = add(sum1, a1, _mm256_set1_epi32(pair));
  }
#else
  static __m256i add(__m256i sum, __m256i a, __m256i pair) {
    return _mm256_dpwssd_avx_epi32(sum, a, pair);
  }

  // In assembly for the reason given in x86_avx2.cpp.
  static void add_at(__m256i& sum0, __m256i& sum1, __m256i a0, __m256i a1, const std::int16_t* at) {
    __m256i x;
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "%{vex%} vpdpwssd %[x], %[a0], %[sum0]\n\t"
        "%{vex%} vpdpwssd %[x], %[a1], %[sum1]"
        : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x)
        : [at] "m"(*reinterpret_cast<const std::int16_t(*)[2]>(at)), [a0] "x"(a0), [a1] "x"(a1));
  }
#endif
};

}  // namespace
}  // namespace ctk::kernels

#include "kernels/attention/int8_x86_avx2.h"
//
#include "kernels/attention/attend_x86_avx2.h"

namespace ctk::kernels {

extern const AttentionRow attention_x86_avxvnni;
constinit const AttentionRow attention_x86_avxvnni{
    .isa = Isa::x86_avxvnni,
    .name = "attention_x86_avxvnni",
    .append = append,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .join = join,
    .finish = finish,
};

}  // namespace ctk::kernels

#endif
