// gemm_fp32 for AVX2 and FMA.
#include "kernels/gemm_fp32/gemm_fp32.h"

#if defined(__x86_64__)

#include "kernels/gemm_fp32/vectors_x86_avx2.h"

namespace ctk::kernels {

const GemmFloatRow gemm_fp32_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_fp32_6x16_x86_avx2", kRows, kPanel, packed_bytes<Whole>, pack<Whole>, scratch_bytes,
    run<Whole>};

}  // namespace ctk::kernels

#endif
