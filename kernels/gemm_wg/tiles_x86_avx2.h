// The loops of the 256-bit rows, in panels of 16 columns.
//
// Few lines (rows * digits, is_thin()): codes are unpacked in registers as they stream by, for memory is what counts;
// tiles of up to four lines. More: a chunk of the panel is unpacked once for a block of rows, and tiles of up to six
// lines pass over it. Zen 3 takes four vector instructions a cycle, loads and stores among them: a tile spends 32 on 12
// x 32 products.
//
// The source that includes this gives `Dot`:
//   kSteps                        steps of eight k a sum takes before it must be widened
//   add(sum, w, x)                sum += products of codes and activations, four to a 32-bit lane
//   add_at(sum0, sum1, w0, w1, at)  the same twice, x being the quad at `at` in every lane; first_at(...): sum = ...
//   widened(sum)                  as int32 lanes
// Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/blocks_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kLines = 6;
constexpr std::size_t kThinLines = 4;

// Whether a block of so many lines is few. Small groups make scaling dear, which the other way prepares once.
inline bool is_thin(const PanelLayout& p, std::size_t lines) {
  return lines <= kThinLines || (lines <= 2 * kThinLines && p.group_steps >= 8);
}

// Most lines of one tile of a block.
inline std::size_t tile_lines(const PanelLayout& p, std::size_t block_lines) {
  return is_thin(p, block_lines) ? kThinLines : kLines;
}

inline __m256i load(const void* at) {
  return _mm256_load_si256(static_cast<const __m256i*>(at));
}

inline __m256i quad_at(const char* at) {
  std::int32_t quad;
  __builtin_memcpy(&quad, at, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

inline __m256i low_nibbles(__m256i codes) {
  return _mm256_and_si256(codes, _mm256_set1_epi8(15));
}

inline __m256i high_nibbles(__m256i codes) {
  return low_nibbles(_mm256_srli_epi16(codes, 4));
}

// Keeps the compiler from loading a value twice and from moving whole steps over one another, both of which spill.
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

// ---- few lines -----------------------------------------------------------------------------------------------------

template <std::size_t V>
inline void thin_steps(__m256i (&sums)[V][2], const char* codes, const char* x, std::size_t steps) {
  CTK_UNROLL
  for (std::size_t s = 0; s < steps; ++s) {
    __m256i a = load(codes + s * kStepBytes), b = load(codes + s * kStepBytes + 32);
    settle(a);
    settle(b);
    _mm_prefetch(codes + s * kStepBytes + kPrefetchBytes, _MM_HINT_T0);
    const __m256i a0 = low_nibbles(a), a1 = high_nibbles(a), b0 = low_nibbles(b), b1 = high_nibbles(b);
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const __m256i x0 = quad_at(x + (2 * s * V + v) * kQuad), x1 = quad_at(x + ((2 * s + 1) * V + v) * kQuad);
      sums[v][0] = Dot::add(sums[v][0], a0, x0);
      sums[v][1] = Dot::add(sums[v][1], b0, x0);
      sums[v][0] = Dot::add(sums[v][0], a1, x1);
      sums[v][1] = Dot::add(sums[v][1], b1, x1);
      settle(sums[v][0]);
      settle(sums[v][1]);
    }
  }
}

// All V / D rows by 16 columns from `column` on.
template <std::size_t V, std::size_t D>
[[gnu::noinline]] void thin_tile(const Walk& walk, std::size_t column, std::size_t columns) {
  constexpr std::size_t kRows = V / D, kUnrolled = 4;  // kUnrolled divides Dot::kSteps
  const GemmWg& g = walk.g;
  const PanelLayout& layout = walk.layout;
  const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
  __m256 out[kRows][2];
  for (std::size_t r = 0; r < kRows; ++r) load_bias(g.epilogue, column, columns, out[r]);
  const char *codes = panel + layout.codes, *x = walk.x.codes;
  for (std::size_t group = 0; group < layout.groups; ++group) {
    std::size_t steps = smaller(layout.group_steps, layout.steps - group * layout.group_steps);
    __m256i dots[V][2];
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      dots[v][0] = dots[v][1] = _mm256_set1_epi32(walk.x.corrections[group * V + v]);
      if (g.shape.is_affine) {
        const char* at = panel + layout.zero_points + group * kColumns;
        dots[v][0] = _mm256_mullo_epi32(dots[v][0], zero_points_at(at));
        dots[v][1] = _mm256_mullo_epi32(dots[v][1], zero_points_at(at + 8));
      }
    }
    while (steps != 0) {
      const std::size_t count = smaller(steps, kUnrolled);
      __m256i sums[V][2];
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) sums[v][0] = sums[v][1] = _mm256_setzero_si256();
      if (count == kUnrolled) {
        thin_steps<V>(sums, codes, x, kUnrolled);
      } else {
        thin_steps<V>(sums, codes, x, count);
      }
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        dots[v][0] = _mm256_add_epi32(dots[v][0], Dot::widened(sums[v][0]));
        dots[v][1] = _mm256_add_epi32(dots[v][1], Dot::widened(sums[v][1]));
      }
      steps -= count;
      codes += count * kStepBytes;
      x += count * 2 * V * kQuad;
    }
    const char* scales = panel + group * kColumns * sizeof(std::uint16_t);
    const __m256 scale0 = scales_at(scales), scale1 = scales_at(scales + 16);
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const __m256 scale = _mm256_broadcast_ss(walk.x.scales + group * V + v);
      __m256(&y)[2] = out[v / D];
      y[0] = fused(_mm256_cvtepi32_ps(dots[v][0]), _mm256_mul_ps(scale0, scale), y[0]);
      y[1] = fused(_mm256_cvtepi32_ps(dots[v][1]), _mm256_mul_ps(scale1, scale), y[1]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) finish(g, walk.first_row + r, column, columns, out[r]);
}

template <std::size_t D>
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
      if (height == 1) thin_tile<D, D>(walk, column, columns);
      if constexpr (D <= 2) {
        if (height == 2) thin_tile<2 * D, D>(walk, column, columns);
      }
      if constexpr (D == 1) {
        if (height == 3) thin_tile<3, D>(walk, column, columns);
        if (height == 4) thin_tile<4, D>(walk, column, columns);
      }
    }
  }
}

// ---- many lines ----------------------------------------------------------------------------------------------------

template <std::size_t V>
using Sums = __m256i[V][2];

// The sums of `steps` steps; moves on past them. ahead: codes to fetch meanwhile, a line a step.
template <std::size_t V>
inline void sum_steps(Sums<V>& sums, const std::uint8_t*& w, const char*& x, const char*& ahead, std::size_t steps) {
  _mm_prefetch(ahead, _MM_HINT_T0);
  const __m256i w0 = load(w), w1 = load(w + 32), w2 = load(w + 64), w3 = load(w + 96);
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) Dot::first_at(sums[v][0], sums[v][1], w0, w1, x + v * kQuad);
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) Dot::add_at(sums[v][0], sums[v][1], w2, w3, x + (V + v) * kQuad);
  for (w += 2 * kStepBytes, x += 2 * V * kQuad, ahead += kStepBytes; --steps != 0;
       w += 2 * kStepBytes, x += 2 * V * kQuad, ahead += kStepBytes) {
    _mm_prefetch(ahead, _MM_HINT_T0);
    CTK_UNROLL
    for (std::size_t j = 0; j < 2; ++j) {
      const __m256i a = load(w + j * kStepBytes), b = load(w + j * kStepBytes + 32);
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
};

// last: sums of the last steps; before: dots of those before, if there are any.
template <std::size_t V, std::size_t D, bool kAffine, bool kBefore>
inline void add_group(const Group& group, const Sums<V>& last, const Sums<V>& before) {
  const __m256 scale0 = _mm256_load_ps(group.scales), scale1 = _mm256_load_ps(group.scales + 8);
  CTK_UNROLL
  for (std::size_t r = 0; r < V / D; ++r) {
    __m256 y0 = _mm256_load_ps(group.sums + r * kColumns), y1 = _mm256_load_ps(group.sums + r * kColumns + 8);
    CTK_UNROLL
    for (std::size_t v = r * D; v < (r + 1) * D; ++v) {
      __m256i d0 = Dot::widened(last[v][0]), d1 = Dot::widened(last[v][1]);
      if constexpr (kBefore) {
        d0 = _mm256_add_epi32(d0, before[v][0]);
        d1 = _mm256_add_epi32(d1, before[v][1]);
      }
      const __m256i c = _mm256_set1_epi32(group.corrections[v]);
      d0 = _mm256_add_epi32(d0, kAffine ? _mm256_mullo_epi32(c, load(group.zero_points)) : c);
      d1 = _mm256_add_epi32(d1, kAffine ? _mm256_mullo_epi32(c, load(group.zero_points + 8)) : c);
      const __m256 scale = _mm256_broadcast_ss(group.line_scales + v);
      y0 = fused(_mm256_cvtepi32_ps(d0), _mm256_mul_ps(scale0, scale), y0);
      y1 = fused(_mm256_cvtepi32_ps(d1), _mm256_mul_ps(scale1, scale), y1);
    }
    _mm256_store_ps(group.sums + r * kColumns, y0);
    _mm256_store_ps(group.sums + r * kColumns + 8, y1);
  }
}

// One tile of V lines over the groups of a chunk. sums: of its rows, [V / D][16].
template <std::size_t V, std::size_t D, bool kAffine>
[[gnu::noinline]] void tile(const Chunk& chunk, const Staged& x, float* sums) {
  const std::uint8_t* w = chunk.codes;
  const char *quads = x.codes, *ahead = chunk.next;
  Group group{chunk.scales, chunk.zero_points, x.scales, x.corrections, sums};
  for (std::size_t g = 0; g < chunk.groups; ++g) {
    std::size_t steps = g + 1 == chunk.groups ? chunk.last_steps : chunk.group_steps;
    Sums<V> acc, dots;
    if (steps <= Dot::kSteps) {
      sum_steps<V>(acc, w, quads, ahead, steps);
      add_group<V, D, kAffine, false>(group, acc, dots);
    } else {
      sum_steps<V>(acc, w, quads, ahead, Dot::kSteps);
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        dots[v][0] = Dot::widened(acc[v][0]);
        dots[v][1] = Dot::widened(acc[v][1]);
      }
      for (steps -= Dot::kSteps; steps > Dot::kSteps; steps -= Dot::kSteps) {
        sum_steps<V>(acc, w, quads, ahead, Dot::kSteps);
        CTK_UNROLL
        for (std::size_t v = 0; v < V; ++v) {
          dots[v][0] = _mm256_add_epi32(dots[v][0], Dot::widened(acc[v][0]));
          dots[v][1] = _mm256_add_epi32(dots[v][1], Dot::widened(acc[v][1]));
        }
      }
      sum_steps<V>(acc, w, quads, ahead, steps);
      add_group<V, D, kAffine, true>(group, acc, dots);
    }
    group.scales += kColumns;
    group.zero_points += kAffine ? kColumns : 0;
    group.line_scales += V;
    group.corrections += V;
  }
}

template <std::size_t D, bool kAffine>
void tile_of(std::size_t rows, const Chunk& chunk, const Staged& x, float* sums) {
  if constexpr (D == 1) {
    if (rows == 6) tile<6, D, kAffine>(chunk, x, sums);
    if (rows == 5) tile<5, D, kAffine>(chunk, x, sums);
    if (rows == 4) tile<4, D, kAffine>(chunk, x, sums);
  }
  if constexpr (D <= 2) {
    if (rows == 3) tile<3 * D, D, kAffine>(chunk, x, sums);
  }
  if (rows == 2) tile<2 * D, D, kAffine>(chunk, x, sums);
  if (rows == 1) tile<D, D, kAffine>(chunk, x, sums);
}

template <std::size_t D>
void thick(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
           std::size_t n_end, void* scratch) {
  const PanelLayout layout = layout_of(g.shape);
  const Tiles tiles = tiles_of(rows, D, kLines);
  const ChunkMemory memory = chunk_memory(layout, scratch);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
    const std::size_t columns = smaller(kColumns, n_end - column);
    __m256 bias[2];
    load_bias(g.epilogue, column, columns, bias);
    for (std::size_t r = 0; r < rows; ++r) {
      _mm256_store_ps(memory.sums + r * kColumns, bias[0]);
      _mm256_store_ps(memory.sums + r * kColumns + 8, bias[1]);
    }
    for (std::size_t group = 0; group < layout.groups; group += chunk_groups_of(layout)) {
      const Chunk chunk = unpack_chunk(layout, panel, group, g.shape.is_affine, memory);
      for (std::size_t t = 0; t < tiles.count; ++t) {
        const std::size_t first = tiles.first(t), height = tiles.first(t + 1) - first, lines = height * D;
        Staged x = staged_tile(layout, staged, rows * D, first * D);
        x.scales += group * lines;
        x.corrections += group * lines;
        x.codes += group * layout.group_steps * kStep * lines;
        float* sums = memory.sums + first * kColumns;
        if (g.shape.is_affine) {
          tile_of<D, true>(height, chunk, x, sums);
        } else {
          tile_of<D, false>(height, chunk, x, sums);
        }
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const __m256 sums[2] = {_mm256_load_ps(memory.sums + r * kColumns),
                              _mm256_load_ps(memory.sums + r * kColumns + 8)};
      finish(g, m_begin + r, column, columns, sums);
    }
  }
}

// ---- what a row is made of -----------------------------------------------------------------------------------------

inline std::size_t block_rows(const WgShape& s, int digits) {
  const std::size_t bytes = layout_of(s).steps * kStep * static_cast<std::size_t>(digits);
  const std::size_t fitting = bytes == 0 ? kMostRows : kBlockBytes / bytes;
  return fitting < kLeastRows ? kLeastRows : smaller(fitting, kMostRows);
}

inline std::size_t staged_bytes(const WgShape& s, int digits, std::size_t rows) {
  return staged_bytes_of(layout_of(s), rows * static_cast<std::size_t>(digits));
}

inline void stage(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged) {
  const std::size_t lines = rows * static_cast<std::size_t>(g.digits);
  stage_tiles(g, a, rows, begin, end, tile_lines(layout_of(g.shape), lines), staged);
}

inline std::size_t scratch_bytes(const WgShape& s, int digits) {
  return chunk_bytes(layout_of(s), block_rows(s, digits));
}

template <std::size_t D>
void run_digits(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void* scratch) {
  if (is_thin(layout_of(g.shape), rows * D)) {
    thin<D>(g, staged, m_begin, rows, n_begin, n_end);
  } else {
    thick<D>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  }
}

inline void run(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void* scratch) {
  if (g.digits == 1) run_digits<1>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 2) run_digits<2>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 3) run_digits<3>(g, staged, m_begin, rows, n_begin, n_end, scratch);
}

}  // namespace
}  // namespace ctk::kernels
