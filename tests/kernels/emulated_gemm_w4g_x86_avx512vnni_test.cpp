// The AVX-512 VNNI row of gemm_w4g once more, from the same source, on emulated instructions
// (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#pragma GCC diagnostic ignored "-Wpsabi"
#define CTK_USE_SIMDE
#define gemm_w4g_12x32_x86_avx512vnni emulated_gemm_w4g_12x32_x86_avx512vnni
#include "kernels/gemm_w4g/x86_avx512vnni.cpp"

namespace ctk::kernels::test {
const GemmW4Row* emulated_w4g_avx512vnni() {
  return &emulated_gemm_w4g_12x32_x86_avx512vnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/gemm_w4g/gemm_w4g.h"

namespace ctk::kernels::test {
const GemmW4Row* emulated_w4g_avx512vnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
