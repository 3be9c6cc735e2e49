// The AVX-VNNI row of attention once more, from the same source, on emulated instructions (kernels/intrinsics_x86.h).
#if __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#define CTK_USE_SIMDE
#define attention_x86_avxvnni emulated_attention_x86_avxvnni
#include "kernels/attention/x86_avxvnni.cpp"

namespace ctk::kernels::test {
const AttentionRow* emulated_attention_avxvnni() {
  return &emulated_attention_x86_avxvnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/attention/attention.h"

namespace ctk::kernels::test {
const AttentionRow* emulated_attention_avxvnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
