// The x86 vector types and instructions: the compiler's, or with CTK_USE_SIMDE an emulation of them in plain C++, with
// which tests run a row on processors that lack its instructions.
#pragma once

#if defined(CTK_USE_SIMDE)
#ifndef SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_ENABLE_NATIVE_ALIASES
#endif
#include <simde/x86/avx512.h>
#else
#include <immintrin.h>
#endif

// Unrolls the loop it stands before; a tile of registers needs it. The emulation is spared: it only has to be right.
#if defined(CTK_USE_SIMDE)
#define CTK_UNROLL
#else
#define CTK_UNROLL _Pragma("GCC unroll 8")
#endif
