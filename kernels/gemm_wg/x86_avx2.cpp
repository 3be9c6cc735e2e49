// gemm_wg on AVX2: vpmaddubsw of codes and signed digits. Of codes of up to four bits a 16-bit lane takes eight
// results, 32 k, before it must be widened: 8 * 2 * 15 * 128 = 30720. So nearly two multiply-adds of 32 products start
// a cycle where widening after each one allows one. Codes of five bits may come four times (4 * 2 * 31 * 128 = 31744),
// those of six twice (2 * 2 * 63 * 128 = 32256), and eight bits not even once: they are split into halves of four.
#if defined(__x86_64__)

#include "kernels/gemm_wg/panels.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Dot {
  static constexpr int kMostBits = 6;
  static constexpr bool kTakesWords = true;

  static constexpr std::size_t quads(int bits) { return bits <= 4 ? 8 : bits == 5 ? 4 : 2; }

  static __m256i add(__m256i sum, __m256i w, __m256i x) { return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x)); }

  // The twelve sums of a tile, two weights and two temporaries fill the registers to the last; written as intrinsics,
  // GCC 12 reorders them and spills.
  static void add_at(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
    __m256i x, product;
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "vpmaddubsw %[x], %[w0], %[product]\n\t"
        "vpmaddubsw %[x], %[w1], %[x]\n\t"
        "vpaddw %[product], %[sum0], %[sum0]\n\t"
        "vpaddw %[x], %[sum1], %[sum1]"
        : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
        : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
  }

  static void first_at(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
    __asm__(
        "vpbroadcastd %[at], %[sum1]\n\t"
        "vpmaddubsw %[sum1], %[w0], %[sum0]\n\t"
        "vpmaddubsw %[sum1], %[w1], %[sum1]"
        : [sum0] "=&x"(sum0), [sum1] "=&x"(sum1)
        : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
  }

  static __m256i widened(__m256i sum, int factor) {
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(static_cast<short>(factor)));
  }
};

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_wg/tiles_x86_avx2.h"

namespace ctk::kernels {

extern const GemmWgRow gemm_wg_6x16_x86_avx2;
constinit const GemmWgRow gemm_wg_6x16_x86_avx2 = row_of(Isa::x86_avx2, "gemm_wg_6x16_x86_avx2", kColumns);

}  // namespace ctk::kernels

#endif
