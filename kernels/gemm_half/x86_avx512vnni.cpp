// gemm_fp16 and gemm_bf16 for AVX-512: the tiles of gemm_fp32 with weights widened as they are read.
#include "kernels/gemm_half/gemm_half.h"

#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/gemm_fp32/vectors_x86_avx512.h"

namespace ctk::kernels {
namespace {

struct Half {
  using Stored = unsigned short;
  static Vector widen(const Stored* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Stored narrow(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};

struct Brain {
  using Stored = unsigned short;  // the upper half of a float
  static Vector widen(const Stored* from) {
    const __m512i upper = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(upper, 16));
  }
  static Stored narrow(float value) {
    return static_cast<Stored>(_mm_extract_epi16(_mm_castps_si128(_mm_set_ss(value)), 1));
  }
};

}  // namespace

const GemmFloatRow gemm_fp16_14x32_x86_avx512vnni = {Isa::x86_avx512vnni,
                                                     "gemm_fp16_14x32_x86_avx512vnni",
                                                     kRows,
                                                     kPanel,
                                                     packed_bytes<Half>,
                                                     pack<Half>,
                                                     scratch_bytes,
                                                     run<Half>};
const GemmFloatRow gemm_bf16_14x32_x86_avx512vnni = {Isa::x86_avx512vnni,
                                                     "gemm_bf16_14x32_x86_avx512vnni",
                                                     kRows,
                                                     kPanel,
                                                     packed_bytes<Brain>,
                                                     pack<Brain>,
                                                     scratch_bytes,
                                                     run<Brain>};

}  // namespace ctk::kernels

#endif
