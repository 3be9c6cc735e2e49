// The AVX-512 VNNI row of gemm_wg once more, from the same source, on emulated instructions
// (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#define CTK_USE_SIMDE
#define gemm_wg_12x32_x86_avx512vnni emulated_gemm_wg_12x32_x86_avx512vnni
#include "kernels/gemm_wg/x86_avx512vnni.cpp"

namespace ctk::kernels::test {
const GemmWgRow* emulated_wg_avx512vnni() {
  return &emulated_gemm_wg_12x32_x86_avx512vnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels::test {
const GemmWgRow* emulated_wg_avx512vnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
