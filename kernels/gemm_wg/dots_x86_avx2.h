// What the loops of the 256-bit rows (thin_x86_avx2.h, thick_x86_avx2.h) share.
//
// The source that includes this gives `Dot`:
//   kMostBits                     codes of more bits are split into lower and upper halves of four, which are added up
//                                 apart: sum = lower + 16 * upper
//   quads(bits)                   quads a sum takes before it must be widened, at codes of so many bits
//   add(sum, w, x)                sum += products of codes and activations, four to a 32-bit lane
//   add_at(sum0, sum1, w0, w1, at)  the same twice, x being the quad at `at` in every lane; first_at(...): sum = ...
//   widened(sum, factor)          factor times sum as int32 lanes
// Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/blocks_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kLines = 6;
constexpr std::size_t kThinLines = 4;
constexpr int kHalfBits = 4, kHalf = 1 << kHalfBits;  // of split codes

constexpr bool is_split(int bits) {
  return bits > Dot::kMostBits;
}

// Bytes a code takes in a chunk.
constexpr std::size_t copies_of(int bits) {
  return is_split(bits) ? 2 : 1;
}

constexpr std::size_t quads_of(int bits) {
  return Dot::quads(is_split(bits) ? kHalfBits : bits);
}

[[gnu::always_inline]] inline __m256i load(const void* at) {
  return _mm256_load_si256(static_cast<const __m256i*>(at));
}

[[gnu::always_inline]] inline __m256i quad_at(const char* at) {
  std::int32_t quad;
  __builtin_memcpy(&quad, at, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

// Keeps the compiler from moving whole steps over one another, which spills.
inline void settle([[maybe_unused]] __m256i& a) {
#if !defined(CTK_USE_SIMDE)
  __asm__ volatile("" : "+x"(a));
#endif
}

// A product's fixed parts.
struct Walk {
  const GemmWg& g;
  PanelLayout layout;
  Staged x;               // of the tile
  std::size_t first_row;  // of the tile, in C
};

template <std::size_t V>
using Sums = __m256i[V][2];

}  // namespace
}  // namespace ctk::kernels
