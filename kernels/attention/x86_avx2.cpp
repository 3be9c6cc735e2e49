// attention for AVX2 with FMA and F16C. Codes of int8 caches are multiplied as 16-bit pairs (vpmaddwd).
#if defined(__x86_64__)

#include <cstdint>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Pairs {
  static __m256i add(__m256i sum, __m256i a, __m256i pair) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, pair)); }

  // The twelve sums of a tile, two operands and two temporaries fill the registers to the last; written as intrinsics,
  // GCC 12 reorders them and spills.
  static void add_at(__m256i& sum0, __m256i& sum1, __m256i a0, __m256i a1, const std::int16_t* at) {
    __m256i x, product;
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "vpmaddwd %[x], %[a0], %[product]\n\t"
        "vpmaddwd %[x], %[a1], %[x]\n\t"
        "vpaddd %[product], %[sum0], %[sum0]\n\t"
        "vpaddd %[x], %[sum1], %[sum1]"
        : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
        : [at] "m"(*reinterpret_cast<const std::int16_t(*)[2]>(at)), [a0] "x"(a0), [a1] "x"(a1));
  }
};

}  // namespace
}  // namespace ctk::kernels

#include "kernels/attention/int8_x86_avx2.h"

#include "kernels/attention/attend_x86_avx2.h"

namespace ctk::kernels {

extern const AttentionRow attention_x86_avx2;
constinit const AttentionRow attention_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "attention_x86_avx2",
    .append = append,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .join = join,
    .finish = finish,
};

}  // namespace ctk::kernels

#endif
