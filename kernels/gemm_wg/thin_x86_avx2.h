// Few lines (rows * digits): codes are unpacked in registers as they stream by, for memory is what counts; tiles of up
// to four lines by a panel. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/dots_x86_avx2.h"

namespace ctk::kernels {
namespace {

// Sums since they were last widened; of split codes `upper` holds those of their upper halves.
template <std::size_t V, int kBits>
struct ThinSums {
  Sums<V> dots;
  Sums<V> lower;
  Sums<is_split(kBits) ? V : 1> upper;

  CTK_INLINE void start() {
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      lower[v][0] = lower[v][1] = _mm256_setzero_si256();
      if constexpr (is_split(kBits)) upper[v][0] = upper[v][1] = _mm256_setzero_si256();
    }
  }

  CTK_INLINE void widen() {
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      CTK_UNROLL
      for (std::size_t part = 0; part < 2; ++part) {
        __m256i& dot = dots[v][part];
        dot = _mm256_add_epi32(dot, Dot::widened(lower[v][part], 1));
        if constexpr (is_split(kBits)) dot = _mm256_add_epi32(dot, Dot::widened(upper[v][part], kHalf));
      }
    }
  }

  // Quad I of the step at `codes`; x: the step's quads.
  template <int I>
  CTK_INLINE void add(const char* codes, const char* x) {
    __m256i a, b, a1, b1;
    quad_codes<Planes256, kBits, I>(codes, 0, a);
    quad_codes<Planes256, kBits, I>(codes, 1, b);
    if constexpr (is_split(kBits)) {
      a1 = Planes256::upper_half(a);
      b1 = Planes256::upper_half(b);
      a = Planes256::masked(a, kHalf - 1);
      b = Planes256::masked(b, kHalf - 1);
    }
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const __m256i quad = quad_at(x + (I * V + v) * kQuad);
      lower[v][0] = Dot::add(lower[v][0], a, quad);
      lower[v][1] = Dot::add(lower[v][1], b, quad);
      if constexpr (is_split(kBits)) {
        upper[v][0] = Dot::add(upper[v][0], a1, quad);
        upper[v][1] = Dot::add(upper[v][1], b1, quad);
      }
      settle(lower[v][0]);
      settle(lower[v][1]);
    }
  }

  CTK_INLINE void add_step(const char* codes, const char* x) {
    fetch_step<kBits>(codes);
    add<0>(codes, x);
    add<1>(codes, x);
    if constexpr (quads_of(kBits) < kQuads) {
      widen();
      start();
    }
    add<2>(codes, x);
    add<3>(codes, x);
  }
};

// All V / D rows by 16 columns from `column` on.
template <int kBits, std::size_t V, std::size_t D>
[[gnu::noinline]] void thin_tile(const Walk& walk, std::size_t column, std::size_t columns) {
  constexpr std::size_t kRows = V / D, kStepBytes = step_bytes_of(kBits);
  constexpr bool kPaired = quads_of(kBits) >= 2 * kQuads;  // two steps before sums are widened
  const GemmWg& g = walk.g;
  const PanelLayout& layout = walk.layout;
  const bool is_whole = D == 2 && g.shape.sums_whole(D);
  const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
  __m256 out[kRows][2];
  for (std::size_t r = 0; r < kRows; ++r) load_bias(g.epilogue, column, columns, out[r]);
  const char *codes = panel + layout.codes, *x = walk.x.codes;
  for (std::size_t group = 0; group < layout.groups; ++group) {
    std::size_t steps = smaller(layout.group_steps, layout.steps - group * layout.group_steps);
    ThinSums<V, kBits> sums;
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      __m256i(&dots)[2] = sums.dots[v];
      dots[0] = dots[1] = _mm256_set1_epi32(walk.x.corrections[group * V + v]);
      if (g.shape.is_affine) {
        const char* at = panel + layout.zero_points + group * kColumns;
        dots[0] = _mm256_mullo_epi32(dots[0], zero_points_at(at));
        dots[1] = _mm256_mullo_epi32(dots[1], zero_points_at(at + 8));
      }
    }
    for (; kPaired && steps >= 2; steps -= 2, codes += 2 * kStepBytes, x += 2 * V * kStep) {
      sums.start();
      sums.add_step(codes, x);
      sums.add_step(codes + kStepBytes, x + V * kStep);
      sums.widen();
    }
    for (; steps != 0; --steps, codes += kStepBytes, x += V * kStep) {
      sums.start();
      sums.add_step(codes, x);
      sums.widen();
    }
    const char* scales = panel + group * kColumns * sizeof(std::uint16_t);
    const __m256 scale0 = scales_at(scales), scale1 = scales_at(scales + 16);
    if (is_whole) join_digits<V, D>(sums.dots);
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      if (is_whole && v % D + 1 < D) continue;
      const __m256 scale = _mm256_broadcast_ss(walk.x.scales + group * V + v);
      __m256(&y)[2] = out[v / D];
      y[0] = fused(_mm256_cvtepi32_ps(sums.dots[v][0]), _mm256_mul_ps(scale0, scale), y[0]);
      y[1] = fused(_mm256_cvtepi32_ps(sums.dots[v][1]), _mm256_mul_ps(scale1, scale), y[1]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) finish(g, walk.first_row + r, column, columns, out[r]);
}

template <int kBits, std::size_t D>
void thin(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
          std::size_t n_end) {
  Walk walk{g, layout_of(g.shape), {}, 0};
  const Tiles tiles = tiles_of(rows, D, kThinLines);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = smaller(kColumns, n_end - column);
    for (std::size_t t = 0; t < tiles.count; ++t) {
      const std::size_t first = tiles.first(t), height = tiles.first(t + 1) - first;
      walk.x = staged_tile(walk.layout, staged, rows * D, first * D);
      walk.first_row = m_begin + first;
      if (height == 1) thin_tile<kBits, D, D>(walk, column, columns);
      if constexpr (D <= 2) {
        if (height == 2) thin_tile<kBits, 2 * D, D>(walk, column, columns);
      }
      if constexpr (D == 1) {
        if (height == 3) thin_tile<kBits, 3, D>(walk, column, columns);
        if (height == 4) thin_tile<kBits, 4, D>(walk, column, columns);
      }
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
