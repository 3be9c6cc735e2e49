// gemm_fp16 and gemm_bf16 for AVX2, FMA and F16C: the tiles of gemm_fp32 with weights widened as they are read.
#include "kernels/gemm_half/gemm_half.h"

#if defined(__x86_64__)

#include "kernels/gemm_fp32/vectors_x86_avx2.h"

#include "kernels/gemm_half/forms_x86.h"

namespace ctk::kernels {

const GemmFloatRow gemm_fp16_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_fp16_6x16_x86_avx2", kRows, kPanel, packed_bytes<Half>, pack<Half>, scratch_bytes, run<Half>};
const GemmFloatRow gemm_bf16_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_bf16_6x16_x86_avx2", kRows, kPanel, packed_bytes<Brain>, pack<Brain>, scratch_bytes,
    run<Brain>};

}  // namespace ctk::kernels

#endif
