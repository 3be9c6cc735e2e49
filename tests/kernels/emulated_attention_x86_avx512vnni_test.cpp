// The AVX-512 VNNI row of attention once more, from the same source, on emulated instructions
// (kernels/intrinsics_x86.h).
#if __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#define CTK_USE_SIMDE
#define attention_x86_avx512vnni emulated_attention_x86_avx512vnni
#include "kernels/attention/x86_avx512vnni.cpp"

namespace ctk::kernels::test {
const AttentionRow* emulated_attention_avx512vnni() {
  return &emulated_attention_x86_avx512vnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/attention/attention.h"

namespace ctk::kernels::test {
const AttentionRow* emulated_attention_avx512vnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
