// gemm_w4g on AVX2: vpmaddubsw of codes (0..15) and signed digits. A 16-bit lane takes eight of its results, 32 k,
// before it must be widened: 8 * 2 * 15 * 128 = 30720. So two multiply-adds of 32 products start each cycle where the
// usual widening after each one allows one.
//
// Few lines (rows * digits <= 3): codes are unpacked in registers as they stream by, for memory is what counts.
// More: a chunk of the panel is unpacked once for a block of rows, and tiles of six lines by 16 columns pass over it.
#if defined(__x86_64__)

#include "kernels/gemm_w4g/blocks_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kLines = 6, kThinLines = 3, kStepsIn16Bits = 4;

inline __m256i load(const void* at) {
  return _mm256_load_si256(static_cast<const __m256i*>(at));
}

inline __m256i quad_at(const char* at) {
  std::int32_t quad;
  __builtin_memcpy(&quad, at, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

// ---- few lines -----------------------------------------------------------------------------------------------------

// Keeps the compiler from loading a value twice and from moving whole steps over one another, both of which spill.
inline void settle(__m256i& a, __m256i& b) {
  __asm__ volatile("" : "+x"(a), "+x"(b));
}

// Adds up to four steps (32 k) to the 32-bit sums. x: the first step's quads.
template <std::size_t V>
inline void thin_span(__m256i (&sums)[V][2], const char* codes, const char* x, std::size_t steps) {
  const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  __m256i acc[V][2];
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) acc[v][0] = acc[v][1] = _mm256_setzero_si256();
  CTK_UNROLL
  for (std::size_t s = 0; s < steps; ++s) {
    __m256i a = load(codes + s * kStepBytes), b = load(codes + s * kStepBytes + 32);
    settle(a, b);
    const __m256i a0 = _mm256_and_si256(a, low), a1 = _mm256_and_si256(_mm256_srli_epi16(a, 4), low);
    const __m256i b0 = _mm256_and_si256(b, low), b1 = _mm256_and_si256(_mm256_srli_epi16(b, 4), low);
    CTK_UNROLL
    for (std::size_t v = 0; v < V; ++v) {
      const __m256i x0 = quad_at(x + (2 * s * V + v) * kQuad), x1 = quad_at(x + ((2 * s + 1) * V + v) * kQuad);
      acc[v][0] = _mm256_add_epi16(acc[v][0], _mm256_maddubs_epi16(a0, x0));
      acc[v][1] = _mm256_add_epi16(acc[v][1], _mm256_maddubs_epi16(b0, x0));
      acc[v][0] = _mm256_add_epi16(acc[v][0], _mm256_maddubs_epi16(a1, x1));
      acc[v][1] = _mm256_add_epi16(acc[v][1], _mm256_maddubs_epi16(b1, x1));
      settle(acc[v][0], acc[v][1]);
    }
  }
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) {
    sums[v][0] = _mm256_add_epi32(sums[v][0], _mm256_madd_epi16(acc[v][0], ones));
    sums[v][1] = _mm256_add_epi32(sums[v][1], _mm256_madd_epi16(acc[v][1], ones));
  }
}

template <std::size_t V, std::size_t D>
[[gnu::noinline]] void thin(const GemmW4& g, const void* staged, std::size_t m_begin, std::size_t n_begin,
                            std::size_t n_end) {
  constexpr std::size_t kRows = V / D, kSteps = kStepsIn16Bits;
  const PanelLayout layout = layout_of(g.shape);
  const Staged x = staged_tile(layout, staged, V, 0);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
    const std::size_t columns = smaller(kColumns, n_end - column);
    __m256 out[kRows][2];
    load_bias(g.epilogue, column, columns, out[0]);
    for (std::size_t r = 1; r < kRows; ++r) out[r][0] = out[0][0], out[r][1] = out[0][1];
    const char *codes = panel + layout.codes, *quads = x.codes;
    for (std::size_t group = 0; group < layout.groups; ++group) {
      const std::size_t steps = smaller(layout.group_steps, layout.steps - group * layout.group_steps);
      __m256i sums[V][2];
      __m256i zero_points[2];
      if (g.shape.is_affine) {
        const char* at = panel + layout.zero_points + group * kColumns;
        zero_points[0] = zero_points_at(at);
        zero_points[1] = zero_points_at(at + 8);
      }
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        const __m256i c = _mm256_set1_epi32(x.corrections[group * V + v]);
        sums[v][0] = g.shape.is_affine ? _mm256_mullo_epi32(c, zero_points[0]) : c;
        sums[v][1] = g.shape.is_affine ? _mm256_mullo_epi32(c, zero_points[1]) : c;
      }
      std::size_t s = 0;
      for (; s + kSteps <= steps; s += kSteps) {
        thin_span<V>(sums, codes, quads, kSteps);
        codes += kSteps * kStepBytes;
        quads += kSteps * 2 * V * kQuad;
      }
      if (s < steps) {
        thin_span<V>(sums, codes, quads, steps - s);
        codes += (steps - s) * kStepBytes;
        quads += (steps - s) * 2 * V * kQuad;
      }
      const __m256 scale0 = scales_at(panel + group * kColumns * 2),
                   scale1 = scales_at(panel + group * kColumns * 2 + 16);
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        const __m256 scale = _mm256_broadcast_ss(x.scales + group * V + v);
        __m256(&y)[2] = out[v / D];
        y[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[v][0]), _mm256_mul_ps(scale0, scale), y[0]);
        y[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[v][1]), _mm256_mul_ps(scale1, scale), y[1]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) finish(g, m_begin + r, column, columns, out[r]);
  }
}

// ---- many lines ----------------------------------------------------------------------------------------------------

// sum0 += maddubs(w0, x), sum1 += maddubs(w1, x), x: the quad at `at` in every lane. The twelve sums of a tile, two
// weights and two temporaries fill the registers to the last; written as intrinsics, GCC 12 reorders them and spills.
inline void add_quad(__m256i& sum0, __m256i& sum1, const char* at, __m256i w0, __m256i w1) {
  __m256i x, product;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddubsw %[x], %[w0], %[product]\n\t"
      "vpmaddubsw %[x], %[w1], %[x]\n\t"
      "vpaddw %[product], %[sum0], %[sum0]\n\t"
      "vpaddw %[x], %[sum1], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
      : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
}

// The 16-bit sums of up to eight quads; moves on past them.
template <std::size_t V>
inline void span(__m256i (&acc)[V][2], const std::uint8_t*& w, const char*& quads, std::size_t steps) {
  CTK_UNROLL
  for (std::size_t v = 0; v < V; ++v) acc[v][0] = acc[v][1] = _mm256_setzero_si256();
  do {
    CTK_UNROLL
    for (std::size_t j = 0; j < 2; ++j, w += kStepBytes, quads += V * kQuad) {
      const __m256i w0 = load(w), w1 = load(w + 32);
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) add_quad(acc[v][0], acc[v][1], quads + v * kQuad, w0, w1);
    }
  } while (--steps != 0);
}

// One group of a tile: its dots, scaled and added to the sums.
template <std::size_t V, std::size_t D, bool kAffine>
struct GroupOf {
  const float* scales;              // [16]
  const std::int32_t* zero_points;  // [16]
  const float* line_scales;         // [V]
  const std::int32_t* corrections;  // [V]
  float* sums;                      // [V / D][16]

  // dots: of the spans before, or null.
  inline void add(const __m256i (&acc)[V][2], const __m256i (*dots)[2]) const {
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256 scale0 = _mm256_load_ps(scales), scale1 = _mm256_load_ps(scales + 8);
    CTK_UNROLL
    for (std::size_t r = 0; r < V / D; ++r) {
      __m256 y0 = _mm256_load_ps(sums + r * kColumns), y1 = _mm256_load_ps(sums + r * kColumns + 8);
      CTK_UNROLL
      for (std::size_t v = r * D; v < (r + 1) * D; ++v) {
        __m256i d0 = _mm256_madd_epi16(acc[v][0], ones), d1 = _mm256_madd_epi16(acc[v][1], ones);
        if (dots != nullptr) {
          d0 = _mm256_add_epi32(d0, dots[v][0]);
          d1 = _mm256_add_epi32(d1, dots[v][1]);
        }
        const __m256i c = _mm256_set1_epi32(corrections[v]);
        d0 = _mm256_add_epi32(d0, kAffine ? _mm256_mullo_epi32(c, load(zero_points)) : c);
        d1 = _mm256_add_epi32(d1, kAffine ? _mm256_mullo_epi32(c, load(zero_points + 8)) : c);
        const __m256 scale = _mm256_broadcast_ss(line_scales + v);
        y0 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(d0), _mm256_mul_ps(scale0, scale), y0);
        y1 = _mm256_fmadd_ps(_mm256_cvtepi32_ps(d1), _mm256_mul_ps(scale1, scale), y1);
      }
      _mm256_store_ps(sums + r * kColumns, y0);
      _mm256_store_ps(sums + r * kColumns + 8, y1);
    }
  }
};

// One tile of V lines over the groups of a chunk. sums: of its rows, [V / D][16].
template <std::size_t V, std::size_t D, bool kAffine>
[[gnu::noinline]] void tile(const Chunk& chunk, const Staged& x, float* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  const std::uint8_t* w = chunk.codes;
  const char* quads = x.codes;
  GroupOf<V, D, kAffine> group{chunk.scales, chunk.zero_points, x.scales, x.corrections, sums};
  for (std::size_t g = 0; g < chunk.groups; ++g) {
    std::size_t steps = g + 1 == chunk.groups ? chunk.last_steps : chunk.group_steps;
    __m256i acc[V][2];
    if (steps <= kStepsIn16Bits) {
      span<V>(acc, w, quads, steps);
      group.add(acc, nullptr);
    } else {
      __m256i dots[V][2];
      span<V>(acc, w, quads, kStepsIn16Bits);
      CTK_UNROLL
      for (std::size_t v = 0; v < V; ++v) {
        dots[v][0] = _mm256_madd_epi16(acc[v][0], ones);
        dots[v][1] = _mm256_madd_epi16(acc[v][1], ones);
      }
      for (steps -= kStepsIn16Bits; steps > kStepsIn16Bits; steps -= kStepsIn16Bits) {
        span<V>(acc, w, quads, kStepsIn16Bits);
        CTK_UNROLL
        for (std::size_t v = 0; v < V; ++v) {
          dots[v][0] = _mm256_add_epi32(dots[v][0], _mm256_madd_epi16(acc[v][0], ones));
          dots[v][1] = _mm256_add_epi32(dots[v][1], _mm256_madd_epi16(acc[v][1], ones));
        }
      }
      span<V>(acc, w, quads, steps);
      group.add(acc, dots);
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
void thick(const GemmW4& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
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

// ---- the row -------------------------------------------------------------------------------------------------------

std::size_t block_rows(const W4Shape& s, int digits) {
  const std::size_t bytes = layout_of(s).steps * kStep * static_cast<std::size_t>(digits);
  const std::size_t fitting = bytes == 0 ? kMostRows : kBlockBytes / bytes;
  return fitting < kLeastRows ? kLeastRows : smaller(fitting, kMostRows);
}

std::size_t staged_bytes(const W4Shape& s, int digits, std::size_t rows) {
  return staged_bytes_of(layout_of(s), rows * static_cast<std::size_t>(digits));
}

void stage(const GemmW4& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged) {
  stage_tiles(g, a, rows, begin, end, kLines, staged);
}

std::size_t scratch_bytes(const W4Shape& s, int digits) {
  return chunk_bytes(layout_of(s), block_rows(s, digits));
}

void run(const GemmW4& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
         std::size_t n_end, void* scratch) {
  if (rows * static_cast<std::size_t>(g.digits) <= kThinLines) {
    if (g.digits == 1 && rows == 1) thin<1, 1>(g, staged, m_begin, n_begin, n_end);
    if (g.digits == 1 && rows == 2) thin<2, 1>(g, staged, m_begin, n_begin, n_end);
    if (g.digits == 1 && rows == 3) thin<3, 1>(g, staged, m_begin, n_begin, n_end);
    if (g.digits == 2 && rows == 1) thin<2, 2>(g, staged, m_begin, n_begin, n_end);
    if (g.digits == 3 && rows == 1) thin<3, 3>(g, staged, m_begin, n_begin, n_end);
    return;
  }
  if (g.digits == 1) thick<1>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 2) thick<2>(g, staged, m_begin, rows, n_begin, n_end, scratch);
  if (g.digits == 3) thick<3>(g, staged, m_begin, rows, n_begin, n_end, scratch);
}

}  // namespace

extern const GemmW4Row gemm_w4g_6x16_x86_avx2;
constinit const GemmW4Row gemm_w4g_6x16_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "gemm_w4g_6x16_x86_avx2",
    .n_step = kColumns,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .block_rows = block_rows,
    .staged_bytes = staged_bytes,
    .stage = stage,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels

#endif
