// The AVX-VNNI row of gemm_wg once more, from the same source, on emulated instructions (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#define CTK_USE_SIMDE
#define gemm_wg_6x16_x86_avxvnni emulated_gemm_wg_6x16_x86_avxvnni
#include "kernels/gemm_wg/x86_avxvnni.cpp"

namespace ctk::kernels::test {
const GemmWgRow* emulated_wg_avxvnni() {
  return &emulated_gemm_wg_6x16_x86_avxvnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/gemm_wg/gemm_wg.h"

namespace ctk::kernels::test {
const GemmWgRow* emulated_wg_avxvnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
