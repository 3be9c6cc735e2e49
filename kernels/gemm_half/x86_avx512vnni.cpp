// gemm_fp16 and gemm_bf16 for AVX-512: the tiles of gemm_fp32 with weights widened as they are read.
#include "kernels/gemm_half/gemm_half.h"

#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/gemm_fp32/vectors_x86_avx512.h"

#include "kernels/gemm_half/forms_x86.h"

namespace ctk::kernels {

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
