// Many lines of activations that are summed whole: vpmaddwd of 16-bit codes and activations, two k to a lane. Products
// of bytes take as many instructions at codes of four bits, a digit each, and up to twice as many at eight, whose
// halves go apart, beside what widening their sums takes. A tile is up to six rows by 16 columns. Sources with AVX2
// only; internal linkage.
#pragma once

#include "kernels/gemm_wg/dots_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kWideLines = 12;  // two a row

// sum += w * x for two vectors of eight columns, x: the pair at `at` in every lane. In assembly for the reason given in
// x86_avx2.cpp.
CTK_INLINE void add_pair(__m256i& sum0, __m256i& sum1, __m256i w0, __m256i w1, const char* at) {
#if defined(CTK_USE_SIMDE)
  const __m256i x = quad_at(at);
  sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(w0, x));
  sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(w1, x));
#else
  __m256i x, product;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddwd %[x], %[w0], %[product]\n\t"
      "vpmaddwd %[x], %[w1], %[x]\n\t"
      "vpaddd %[product], %[sum0], %[sum0]\n\t"
      "vpaddd %[x], %[sum1], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
      : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
#endif
}

// R rows over the groups of a chunk. sums: [R][16].
template <std::size_t R, bool kAffine>
[[gnu::noinline]] void wide_tile(const Chunk& chunk, const Staged& staged, float* sums) {
  const std::uint8_t* w = chunk.codes;
  const char *x = staged.codes, *ahead = chunk.next;
  const float *scales = chunk.scales, *row_scales = staged.scales;
  const std::int32_t *points = chunk.zero_points, *corrections = staged.corrections;
  for (std::size_t g = 0; g < chunk.groups; ++g) {
    Sums<R> dots;
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      dots[r][0] = dots[r][1] = _mm256_set1_epi32(corrections[2 * r]);
      if constexpr (kAffine) {
        dots[r][0] = _mm256_mullo_epi32(dots[r][0], load(points));
        dots[r][1] = _mm256_mullo_epi32(dots[r][1], load(points + 8));
      }
    }
    const std::size_t steps = g + 1 == chunk.groups ? chunk.last_steps : chunk.group_steps;
    for (std::size_t quad = 0; quad < kQuads * steps; ++quad, w += 2 * kQuadBytes, x += 2 * R * kQuad) {
      if (quad % 2 == 0) {
        _mm_prefetch(ahead, _MM_HINT_T0);
        ahead += kLineBytes;
      }
      CTK_UNROLL
      for (std::size_t pair = 0; pair < 2; ++pair) {
        const __m256i w0 = load(w + pair * kQuadBytes), w1 = load(w + pair * kQuadBytes + 32);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) add_pair(dots[r][0], dots[r][1], w0, w1, x + (2 * r + pair) * kQuad);
      }
    }
    const __m256 scale0 = _mm256_load_ps(scales), scale1 = _mm256_load_ps(scales + 8);
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m256 scale = _mm256_broadcast_ss(row_scales + 2 * r);
      float* to = sums + r * kColumns;
      _mm256_store_ps(to, fused(_mm256_cvtepi32_ps(dots[r][0]), _mm256_mul_ps(scale0, scale), _mm256_load_ps(to)));
      _mm256_store_ps(to + 8,
                      fused(_mm256_cvtepi32_ps(dots[r][1]), _mm256_mul_ps(scale1, scale), _mm256_load_ps(to + 8)));
    }
    scales += kColumns;
    row_scales += 2 * R;
    corrections += 2 * R;
    points += kAffine ? kColumns : 0;
  }
}

template <bool kAffine>
void wide_tile_of(std::size_t rows, const Chunk& chunk, const Staged& x, float* sums) {
  if (rows == 6) wide_tile<6, kAffine>(chunk, x, sums);
  if (rows == 5) wide_tile<5, kAffine>(chunk, x, sums);
  if (rows == 4) wide_tile<4, kAffine>(chunk, x, sums);
  if (rows == 3) wide_tile<3, kAffine>(chunk, x, sums);
  if (rows == 2) wide_tile<2, kAffine>(chunk, x, sums);
  if (rows == 1) wide_tile<1, kAffine>(chunk, x, sums);
}

struct WideWay {
  static constexpr Form kForm = Form::words;
  static constexpr std::size_t kTileLines = kWideLines;

  static void tile(std::size_t rows, bool is_affine, const Chunk& chunk, const Staged& x, float* sums) {
    if (is_affine) {
      wide_tile_of<true>(rows, chunk, x, sums);
    } else {
      wide_tile_of<false>(rows, chunk, x, sums);
    }
  }
};

}  // namespace
}  // namespace ctk::kernels
