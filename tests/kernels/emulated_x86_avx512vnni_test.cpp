// The AVX-512 VNNI row once more, from the same source, on emulated instructions (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#include "tests/kernels/emulated_avx512.h"
#define gemm_w8a8_8x32_x86_avx512vnni emulated_gemm_w8a8_8x32_x86_avx512vnni
#define winograd_w8a8_4x4_x86_avx512vnni emulated_winograd_w8a8_4x4_x86_avx512vnni
#include "kernels/gemm_w8a8/x86_avx512vnni.cpp"

namespace ctk::kernels::test {
const GemmIntRow* emulated_avx512vnni() {
  return &emulated_gemm_w8a8_8x32_x86_avx512vnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::kernels::test {
const GemmIntRow* emulated_avx512vnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
