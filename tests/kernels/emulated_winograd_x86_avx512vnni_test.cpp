// The tiles of the AVX-512 VNNI row once more, from the same source, on emulated instructions
// (kernels/intrinsics_x86.h); emulated_x86_avx512vnni_test.cpp takes them.
#if defined(__x86_64__) && __has_include(<simde/x86/avx512.h>)

#pragma GCC optimize("O1")  // the emulation is long code
#include "tests/kernels/emulated_avx512.h"
#define winograd_w8a8_4x4_x86_avx512vnni emulated_winograd_w8a8_4x4_x86_avx512vnni
#include "kernels/winograd_w8a8/tile4_x86_avx512vnni.cpp"

#endif
