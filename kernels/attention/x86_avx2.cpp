// attention for AVX2 with FMA and F16C. Codes of int8 caches are multiplied as 16-bit pairs (vpmaddwd).
#if defined(__x86_64__)

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

struct Pairs {
  static __m256i add(__m256i sums, __m256i a, __m256i b) { return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)); }
};

}  // namespace
}  // namespace ctk::kernels

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
