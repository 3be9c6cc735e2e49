// Many lines (rows * digits): a chunk of the panel is unpacked once for a block of rows, and tiles of up to six lines
// pass over it. Zen 3 takes four vector instructions a cycle, loads and stores among them: a tile spends 32 on 12 x 32
// products of codes of up to four bits. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/dots_x86_avx2.h"

namespace ctk::kernels {
namespace {

// The sums of `pairs` pairs of quads; moves on past them. ahead: codes to fetch meanwhile, a line a pair.
template <std::size_t V>
CTK_INLINE void sum_steps(Sums<V>& sums, const std::uint8_t*& w, const char*& x, const char*& ahead,
                          std::size_t pairs) {
  _mm_prefetch(ahead, _MM_HINT_T0);
  const __m256i w0 = load(w), w1 = load(w + 32), w2 = load(w + 64), w3 = load(w + 96);
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) Dot::first_at(sums[v][0], sums[v][1], w0, w1, x + v * kQuad);
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) Dot::add_at(sums[v][0], sums[v][1], w2, w3, x + (V + v) * kQuad);
  for (w += 2 * kQuadBytes, x += 2 * V * kQuad, ahead += kLineBytes; --pairs != 0;
       w += 2 * kQuadBytes, x += 2 * V * kQuad, ahead += kLineBytes) {
    _mm_prefetch(ahead, _MM_HINT_T0);
    CTK_UNROLL
    for (std::size_t j = 0; j < 2; ++j) {
      const __m256i a = load(w + j * kQuadBytes), b = load(w + j * kQuadBytes + 32);
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) Dot::add_at(sums[v][0], sums[v][1], a, b, x + (j * V + v) * kQuad);
    }
  }
}

// What a group of a tile is scaled by and added to.
struct Group {
  const float* scales;              // [16]
  const std::int32_t* zero_points;  // [16], affine only
  const float* line_scales;         // [V]
  const std::int32_t* corrections;  // [V]
  float* sums;                      // [V / D][16]
  bool is_whole;                    // digits are summed as one
};

// last: sums of the last quads; before: dots of those before, if there are any.
template <std::size_t V, std::size_t D, bool kAffine, bool kBefore, int F = 1>
CTK_INLINE void add_group(const Group& group, const Sums<V>& last, const Sums<V>& before) {
  const __m256 scale0 = _mm256_load_ps(group.scales), scale1 = _mm256_load_ps(group.scales + 8);
  CTK_UNROLL
  for (std::size_t r = 0; r < V / D; ++r) {
    __m256 y0 = _mm256_load_ps(group.sums + r * kColumns), y1 = _mm256_load_ps(group.sums + r * kColumns + 8);
    __m256i above0 = _mm256_setzero_si256(), above1 = above0;
    CTK_UNROLL
    for (std::size_t v = r * D; v < (r + 1) * D; ++v) {
      __m256i d0 = Dot::widened(last[v][0], F), d1 = Dot::widened(last[v][1], F);
      if constexpr (kBefore) {
        d0 = _mm256_add_epi32(d0, before[v][0]);
        d1 = _mm256_add_epi32(d1, before[v][1]);
      }
      const __m256i c = _mm256_set1_epi32(group.corrections[v]);
      d0 = _mm256_add_epi32(d0, kAffine ? _mm256_mullo_epi32(c, load(group.zero_points)) : c);
      d1 = _mm256_add_epi32(d1, kAffine ? _mm256_mullo_epi32(c, load(group.zero_points + 8)) : c);
      if constexpr (D == 2) {
        if (group.is_whole && v == r * D) {
          above0 = _mm256_slli_epi32(d0, 8);
          above1 = _mm256_slli_epi32(d1, 8);
          continue;
        }
        d0 = _mm256_add_epi32(d0, above0);
        d1 = _mm256_add_epi32(d1, above1);
      }
      const __m256 scale = _mm256_broadcast_ss(group.line_scales + v);
      y0 = fused(_mm256_cvtepi32_ps(d0), _mm256_mul_ps(scale0, scale), y0);
      y1 = fused(_mm256_cvtepi32_ps(d1), _mm256_mul_ps(scale1, scale), y1);
    }
    _mm256_store_ps(group.sums + r * kColumns, y0);
    _mm256_store_ps(group.sums + r * kColumns + 8, y1);
  }
}

// How codes are added up: kPairs pairs of quads a sum takes, kSplit: in halves.
template <std::size_t P, bool kIsSplit>
struct Way {
  static constexpr std::size_t kPairs = P;
  static constexpr bool kSplit = kIsSplit;
};

// dots = widened sums, or += where there are some already.
template <std::size_t V, int F, bool kIsFirst>
CTK_INLINE void widen(Sums<V>& dots, const Sums<V>& sums) {
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) {
    CTK_UNROLL
    for (std::size_t part = 0; part < 2; ++part) {
      const __m256i d = Dot::widened(sums[v][part], F);
      dots[v][part] = kIsFirst ? d : _mm256_add_epi32(dots[v][part], d);
    }
  }
}

// `pairs` pairs of quads of split codes; moves on past them. Leaves the upper halves' in `sums`.
template <std::size_t V, bool kIsFirst>
CTK_INLINE void sum_halves(Sums<V>& sums, Sums<V>& dots, const std::uint8_t*& w, std::size_t high, const char*& x,
                           const char*& ahead, std::size_t pairs) {
  const std::uint8_t* upper = w + high;
  const char* again = x;
  sum_steps<V>(sums, w, x, ahead, pairs);
  widen<V, 1, kIsFirst>(dots, sums);
  sum_steps<V>(sums, upper, again, ahead, pairs);
}

// One group of a tile, `pairs` pairs of quads long; moves on past them.
template <class W, std::size_t V, std::size_t D, bool kAffine>
CTK_INLINE void add_products(const Group& group, const std::uint8_t*& w, std::size_t high, const char*& x,
                             const char*& ahead, std::size_t pairs) {
  Sums<V> sums, dots;
  if constexpr (W::kSplit) {
    std::size_t count = smaller(pairs, W::kPairs);
    sum_halves<V, true>(sums, dots, w, high, x, ahead, count);
    while ((pairs -= count) != 0) {
      widen<V, kHalf, false>(dots, sums);
      count = smaller(pairs, W::kPairs);
      sum_halves<V, false>(sums, dots, w, high, x, ahead, count);
    }
    add_group<V, D, kAffine, true, kHalf>(group, sums, dots);
  } else if (pairs <= W::kPairs) {
    sum_steps<V>(sums, w, x, ahead, pairs);
    add_group<V, D, kAffine, false>(group, sums, dots);
  } else {
    sum_steps<V>(sums, w, x, ahead, W::kPairs);
    widen<V, 1, true>(dots, sums);
    for (pairs -= W::kPairs; pairs > W::kPairs; pairs -= W::kPairs) {
      sum_steps<V>(sums, w, x, ahead, W::kPairs);
      widen<V, 1, false>(dots, sums);
    }
    sum_steps<V>(sums, w, x, ahead, pairs);
    add_group<V, D, kAffine, true>(group, sums, dots);
  }
}

// One tile of V lines over the groups of a chunk. sums: of its rows, [V / D][16].
template <class W, std::size_t V, std::size_t D, bool kAffine>
[[gnu::noinline]] void tile(const Chunk& chunk, const Staged& x, float* sums) {
  const std::uint8_t* w = chunk.codes;
  const char *quads = x.codes, *ahead = chunk.next;
  Group group{chunk.scales, chunk.zero_points, x.scales, x.corrections, sums, chunk.is_whole};
  for (std::size_t g = 0; g < chunk.groups; ++g) {
    const std::size_t steps = g + 1 == chunk.groups ? chunk.last_steps : chunk.group_steps;
    add_products<W, V, D, kAffine>(group, w, chunk.high, quads, ahead, 2 * steps);
    group.scales += kColumns;
    group.zero_points += kAffine ? kColumns : 0;
    group.line_scales += V;
    group.corrections += V;
  }
}

template <class W, std::size_t D, bool kAffine>
void tile_of(std::size_t rows, const Chunk& chunk, const Staged& x, float* sums) {
  if constexpr (D == 1) {
    if (rows == 6) tile<W, 6, D, kAffine>(chunk, x, sums);
    if (rows == 5) tile<W, 5, D, kAffine>(chunk, x, sums);
    if (rows == 4) tile<W, 4, D, kAffine>(chunk, x, sums);
  }
  if constexpr (D <= 2) {
    if (rows == 3) tile<W, 3 * D, D, kAffine>(chunk, x, sums);
  }
  if (rows == 2) tile<W, 2 * D, D, kAffine>(chunk, x, sums);
  if (rows == 1) tile<W, D, D, kAffine>(chunk, x, sums);
}

template <int kBits, std::size_t D>
struct ThickWay {
  static constexpr Form kForm = bytes_form(kBits);
  static constexpr std::size_t kTileLines = kLines;

  static void tile(std::size_t rows, bool is_affine, const Chunk& chunk, const Staged& x, float* sums) {
    using Bytes = Way<quads_of(kBits) / 2, is_split(kBits)>;
    if (is_affine) {
      tile_of<Bytes, D, true>(rows, chunk, x, sums);
    } else {
      tile_of<Bytes, D, false>(rows, chunk, x, sums);
    }
  }
};

}  // namespace
}  // namespace ctk::kernels
