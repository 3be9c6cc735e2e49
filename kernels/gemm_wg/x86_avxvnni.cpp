// gemm_wg on AVX-VNNI: vpdpbusd on 256 bits adds four products of codes (0..255) and signed digits to an int32 sum,
// exactly. The loops are those of AVX2, without anything to widen.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/gemm_wg/panels.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Dot {
  static constexpr int kMostBits = 8;
  static constexpr bool kTakesWords = false;

  static constexpr std::size_t quads(int) { return ~std::size_t{0}; }

#if defined(CTK_USE_SIMDE)
  [[gnu::always_inline]] static __m256i add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_epi32(sum, w, x);
  }

  static void add_at(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
    std::int32_t quad;
    __builtin_memcpy(&quad, at, sizeof(quad));
    sum0 = add(sum0, w0, _mm256_set1_epi32(quad));
    sum1 = add(sum1, w1, _mm256_set1_epi32(quad));
  }
#else
  [[gnu::always_inline]] static __m256i add(__m256i sum, __m256i w, __m256i x) {
    return _mm256_dpbusd_avx_epi32(sum, w, x);
  }

  // In assembly for the reason given in x86_avx2.cpp.
  static void add_at(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
    __m256i x;
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "%{vex%} vpdpbusd %[x], %[w0], %[sum0]\n\t"
        "%{vex%} vpdpbusd %[x], %[w1], %[sum1]"
        : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x)
        : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
  }
#endif

  static void first_at(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
    sum0 = sum1 = _mm256_setzero_si256();
    add_at(sum0, sum1, w0, w1, at);
  }

  [[gnu::always_inline]] static __m256i widened(__m256i sum, int) {  // 1: nothing is split
    return sum;
  }
};

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_wg/tiles_x86_avx2.h"

namespace ctk::kernels {

extern const GemmWgRow gemm_wg_6x16_x86_avxvnni;
constinit const GemmWgRow gemm_wg_6x16_x86_avxvnni = row_of(Isa::x86_avxvnni, "gemm_wg_6x16_x86_avxvnni", kColumns);

}  // namespace ctk::kernels

#endif
