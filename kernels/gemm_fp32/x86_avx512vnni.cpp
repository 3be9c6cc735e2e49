// gemm_fp32 for AVX-512.
#include "kernels/gemm_fp32/gemm_fp32.h"

#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/gemm_fp32/vectors_x86_avx512.h"

namespace ctk::kernels {

const GemmFloatRow gemm_fp32_14x32_x86_avx512vnni = {Isa::x86_avx512vnni,
                                                     "gemm_fp32_14x32_x86_avx512vnni",
                                                     kRows,
                                                     kPanel,
                                                     packed_bytes<Whole>,
                                                     pack<Whole>,
                                                     scratch_bytes,
                                                     run<Whole>};

}  // namespace ctk::kernels

#endif
