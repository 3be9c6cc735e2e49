// gemm_fp16 and gemm_bf16 for AVX2, FMA and F16C: the tiles of gemm_fp32 with weights widened as they are read.
#include "kernels/gemm_half/gemm_half.h"

#if defined(__x86_64__)

#include "kernels/gemm_fp32/vectors_x86_avx2.h"

namespace ctk::kernels {
namespace {

struct Half {
  using Stored = unsigned short;
  static __m256 widen(const Stored* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static Stored narrow(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};

struct Brain {
  using Stored = unsigned short;  // the upper half of a float
  static __m256 widen(const Stored* from) {
    const __m256i upper = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(upper, 16));
  }
  static Stored narrow(float value) {
    return static_cast<Stored>(_mm_extract_epi16(_mm_castps_si128(_mm_set_ss(value)), 1));
  }
};

}  // namespace

const GemmFloatRow gemm_fp16_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_fp16_6x16_x86_avx2", kRows, kPanel, packed_bytes<Half>, pack<Half>, scratch_bytes, run<Half>};
const GemmFloatRow gemm_bf16_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_bf16_6x16_x86_avx2", kRows, kPanel, packed_bytes<Brain>, pack<Brain>, scratch_bytes,
    run<Brain>};

}  // namespace ctk::kernels

#endif
