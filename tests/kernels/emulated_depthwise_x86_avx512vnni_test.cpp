// depthwise_w8a8 on AVX-512 VNNI once more, from the same source, on emulated instructions (kernels/intrinsics_x86.h).
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#include "tests/kernels/emulated_avx512.h"
#define depthwise_w8a8_1x64_x86_avx512vnni emulated_depthwise_w8a8_1x64_x86_avx512vnni
#include "kernels/depthwise_w8a8/x86_avx512vnni.cpp"

namespace ctk::kernels::test {
const DepthwiseIntRow* emulated_depthwise_avx512vnni() {
  return &emulated_depthwise_w8a8_1x64_x86_avx512vnni;
}
}  // namespace ctk::kernels::test

#else

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

namespace ctk::kernels::test {
const DepthwiseIntRow* emulated_depthwise_avx512vnni() {
  return nullptr;
}
}  // namespace ctk::kernels::test

#endif
