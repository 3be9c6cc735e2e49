// gemm_wg on AVX-512 VNNI: vpdpbusd adds four products of codes (0..255) and signed digits to an int32 sum, exactly.
// Codes are unpacked in registers as they pass by.
//
// Few lines (rows * digits <= 3): one panel, four sums a line, for memory is what counts. More: tiles of up to 12 lines
// by two panels, whose 24 sums, codes and their halves fill 30 registers. A tile takes all of K; a block of staged rows
// stays in the second cache.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/gemm_wg/blocks_x86_avx2.h"

#if defined(CTK_USE_SIMDE)
#define CTK_UNROLL_12
#else
#define CTK_UNROLL_12 _Pragma("GCC unroll 12")
#endif

namespace ctk::kernels {
namespace {

constexpr std::size_t kLines = 12, kThinLines = 3, kPanels = 2;
constexpr std::size_t kStagedBytes = 512 * 1024;  // of a block: half of the second cache of these processors

// ---- what the emulation lacks, or rounds twice
// -----------------------------------------------------------------------

#if defined(CTK_USE_SIMDE)
struct Floats {
  float at[kColumns];
};
inline Floats load_floats(const float* from) {
  Floats f;
  __builtin_memcpy(f.at, from, sizeof(f.at));
  return f;
}
inline void store_floats(float* to, const Floats& f) {
  __builtin_memcpy(to, f.at, sizeof(f.at));
}
inline Floats scales16_at(const char* halves) {
  Floats f;
  _mm256_storeu_ps(f.at, scales_at(halves));
  _mm256_storeu_ps(f.at + 8, scales_at(halves + 16));
  return f;
}
inline __m512i zero_points16_at(const char* bytes) {
  std::int32_t points[kColumns];
  for (std::size_t i = 0; i < kColumns; ++i) points[i] = static_cast<unsigned char>(bytes[i]);
  return _mm512_loadu_si512(points);
}
// out + float(dots) * (scales * scale)
inline Floats add_scaled(const Floats& out, __m512i dots, const Floats& scales, float scale) {
  std::int32_t dot[kColumns];
  _mm512_storeu_si512(dot, dots);
  Floats f;
  for (std::size_t i = 0; i < kColumns; ++i) {
    f.at[i] = __builtin_fmaf(static_cast<float>(dot[i]), scales.at[i] * scale, out.at[i]);
  }
  return f;
}
#else
using Floats = __m512;
inline Floats load_floats(const float* from) {
  return _mm512_loadu_ps(from);
}
inline void store_floats(float* to, Floats f) {
  _mm512_storeu_ps(to, f);
}
inline Floats scales16_at(const char* halves) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)));
}
inline __m512i zero_points16_at(const char* bytes) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}
// out + float(dots) * (scales * scale)
inline Floats add_scaled(Floats out, __m512i dots, Floats scales, float scale) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(scales, _mm512_set1_ps(scale)), out);
}
#endif

// sums[p] += w[p] . x for P panels, x: the quad at `at` in every lane. The 24 sums of a tile and what they need leave
// three registers; written as intrinsics, GCC 12 reorders them and spills.
template <std::size_t P>
CTK_INLINE void add_at(__m512i& sum0, __m512i& sum1, const __m512i (&w)[P], const char* at) {
#if defined(CTK_USE_SIMDE)
  std::int32_t quad;
  __builtin_memcpy(&quad, at, sizeof(quad));
  const __m512i x = _mm512_set1_epi32(quad);
  sum0 = _mm512_dpbusd_epi32(sum0, w[0], x);
  if constexpr (P == 2) sum1 = _mm512_dpbusd_epi32(sum1, w[1], x);
#else
  __m512i x;
  if constexpr (P == 2) {
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "vpdpbusd %[x], %[w0], %[sum0]\n\t"
        "vpdpbusd %[x], %[w1], %[sum1]"
        : [sum0] "+v"(sum0), [sum1] "+v"(sum1), [x] "=&v"(x)
        : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "v"(w[0]), [w1] "v"(w[1]));
  } else {
    __asm__("vpdpbusd %[at]%{1to16%}, %[w0], %[sum0]"
            : [sum0] "+v"(sum0)
            : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "v"(w[0]));
  }
#endif
}

// Codes as 512-bit vectors, one a quad (panels.h).
struct Planes512 {
  using Vector = __m512i;

  [[gnu::always_inline]] static Vector load(const char* at) { return _mm512_loadu_si512(at); }
  [[gnu::always_inline]] static Vector ones(const char* at, std::size_t) {
    const __m256i plane = _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
    return _mm512_inserti64x4(_mm512_castsi256_si512(plane), _mm256_srli_epi16(plane, 1), 1);
  }
  [[gnu::always_inline]] static Vector masked(Vector v, int mask) {
    return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
  }
  [[gnu::always_inline]] static Vector either(Vector a, Vector b) { return _mm512_or_si512(a, b); }

  template <int kBits>
  [[gnu::always_inline]] static void shift(Vector& v) {
    if constexpr (kBits > 0) v = _mm512_slli_epi16(v, kBits);
    if constexpr (kBits < 0) v = _mm512_srli_epi16(v, -kBits);
  }
};

// ---- one tile ------------------------------------------------------------------------------------------------------

// A product's fixed parts and a tile's place in it.
struct Walk {
  const GemmWg& g;
  PanelLayout layout;
  const char* codes;      // of the panels that the tile reads
  std::size_t pitch;      // from one to the next
  Staged x;               // of the tile
  std::size_t first_row;  // of the tile, in C
};

// Quad I of a step for V lines and P panels; x: the step's quads.
template <int kBits, std::size_t V, std::size_t P, std::size_t S, int I>
CTK_INLINE void add_quad(__m512i (&sums)[V][P * S], const char* codes, std::size_t pitch, const char* x) {
  __m512i w[P];
  CTK_UNROLL
  for (std::size_t p = 0; p < P; ++p) quad_codes<Planes512, kBits, I>(codes + p * pitch, 0, w[p]);
  CTK_UNROLL_12
  for (std::size_t v = 0; v < V; ++v) {
    add_at<P>(sums[v][I % S], sums[v][(P - 1) * S + I % S], w, x + (I * V + v) * kQuad);
  }
}

// S sums for each line and panel, taken in turn: so many are in flight. pitch: bytes from panel to panel.
template <int kBits, std::size_t V, std::size_t P, std::size_t S>
CTK_INLINE void add_steps(__m512i (&sums)[V][P * S], const char* codes, std::size_t pitch, const char* x,
                          std::size_t steps) {
  for (std::size_t s = 0; s < steps; ++s, codes += step_bytes_of(kBits), x += V * kStep) {
    for (std::size_t p = 0; p < P; ++p) fetch_step<kBits>(codes + p * pitch);
    add_quad<kBits, V, P, S, 0>(sums, codes, pitch, x);
    add_quad<kBits, V, P, S, 1>(sums, codes, pitch, x);
    add_quad<kBits, V, P, S, 2>(sums, codes, pitch, x);
    add_quad<kBits, V, P, S, 3>(sums, codes, pitch, x);
  }
}

// V / D rows by P panels from `column` on, `columns` of whose columns exist.
template <int kBits, std::size_t V, std::size_t D, std::size_t P>
[[gnu::noinline]] void tile(const Walk& walk, std::size_t column, std::size_t columns) {
  constexpr std::size_t kRows = V / D, kSums = V <= kThinLines ? 4 : 1;
  const GemmWg& g = walk.g;
  const PanelLayout& layout = walk.layout;
  const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
  const bool is_whole = g.shape.sums_whole(D);
  float out[kRows][P * kColumns];
  for (std::size_t p = 0; p < P; ++p) {
    __m256 bias[2];
    load_bias(g.epilogue, column + p * kColumns, columns - p * kColumns, bias);
    for (std::size_t r = 0; r < kRows; ++r) {
      _mm256_storeu_ps(out[r] + p * kColumns, bias[0]);
      _mm256_storeu_ps(out[r] + p * kColumns + 8, bias[1]);
    }
  }
  const char *codes = walk.codes, *x = walk.x.codes;
  for (std::size_t group = 0; group < layout.groups; ++group) {
    const std::size_t steps = smaller(layout.group_steps, layout.steps - group * layout.group_steps);
    __m512i sums[V][P * kSums];
    CTK_UNROLL_12
    for (std::size_t v = 0; v < V; ++v) {
      const __m512i correction = _mm512_set1_epi32(walk.x.corrections[group * V + v]);
      CTK_UNROLL
      for (std::size_t p = 0; p < P; ++p) {
        CTK_UNROLL
        for (std::size_t s = 0; s < kSums; ++s) {
          sums[v][p * kSums + s] = s == 0 ? correction : _mm512_setzero_si512();
        }
      }
    }
    if (g.shape.is_affine) {
      CTK_UNROLL
      for (std::size_t p = 0; p < P; ++p) {
        const __m512i points = zero_points16_at(panel + p * layout.bytes + layout.zero_points + group * kColumns);
        CTK_UNROLL_12
        for (std::size_t v = 0; v < V; ++v) {
          sums[v][p * kSums] = _mm512_mullo_epi32(sums[v][p * kSums], points);
        }
      }
    }
    add_steps<kBits, V, P, kSums>(sums, codes, walk.pitch, x, steps);
    codes += steps * step_bytes_of(kBits);
    x += steps * V * kStep;
    Floats scales[P];
    CTK_UNROLL
    for (std::size_t p = 0; p < P; ++p) {
      scales[p] = scales16_at(panel + p * layout.bytes + group * kColumns * sizeof(std::uint16_t));
    }
    CTK_UNROLL_12
    for (std::size_t r = 0; r < kRows; ++r) {
      CTK_UNROLL
      for (std::size_t p = 0; p < P; ++p) {
        Floats y = load_floats(out[r] + p * kColumns);
        __m512i above = _mm512_setzero_si512();
        CTK_UNROLL
        for (std::size_t v = r * D; v < (r + 1) * D; ++v) {
          __m512i dots = sums[v][p * kSums];
          CTK_UNROLL
          for (std::size_t s = 1; s < kSums; ++s) dots = _mm512_add_epi32(dots, sums[v][p * kSums + s]);
          if constexpr (D == 2) {
            dots = _mm512_add_epi32(dots, above);
            if (is_whole && v == r * D) {
              above = _mm512_slli_epi32(dots, 8);
              continue;
            }
          }
          y = add_scaled(y, dots, scales[p], walk.x.scales[group * V + v]);
        }
        store_floats(out[r] + p * kColumns, y);
      }
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t p = 0; p < P; ++p) {
      const __m256 sums[2] = {_mm256_loadu_ps(out[r] + p * kColumns), _mm256_loadu_ps(out[r] + p * kColumns + 8)};
      finish(g, walk.first_row + r, column + p * kColumns, smaller(columns - p * kColumns, kColumns), sums);
    }
  }
}

template <int kBits, std::size_t D, std::size_t P>
void tile_of(std::size_t rows, const Walk& walk, std::size_t column, std::size_t columns) {
  if (rows == 1) tile<kBits, 1 * D, D, P>(walk, column, columns);
  if (rows == 2) tile<kBits, 2 * D, D, P>(walk, column, columns);
  if (rows == 3) tile<kBits, 3 * D, D, P>(walk, column, columns);
  if (rows == 4) tile<kBits, 4 * D, D, P>(walk, column, columns);
  if constexpr (D <= 2) {
    if (rows == 5) tile<kBits, 5 * D, D, P>(walk, column, columns);
    if (rows == 6) tile<kBits, 6 * D, D, P>(walk, column, columns);
  }
  if constexpr (D == 1) {
    if (rows == 7) tile<kBits, 7, D, P>(walk, column, columns);
    if (rows == 8) tile<kBits, 8, D, P>(walk, column, columns);
    if (rows == 9) tile<kBits, 9, D, P>(walk, column, columns);
    if (rows == 10) tile<kBits, 10, D, P>(walk, column, columns);
    if (rows == 11) tile<kBits, 11, D, P>(walk, column, columns);
    if (rows == 12) tile<kBits, 12, D, P>(walk, column, columns);
  }
}

// As many rows as are few lines, by one panel.
template <int kBits, std::size_t D>
void thin_tile_of(std::size_t rows, const Walk& walk, std::size_t column, std::size_t columns) {
  if (rows == 1) tile<kBits, 1 * D, D, 1>(walk, column, columns);
  if constexpr (D == 1) {
    if (rows == 2) tile<kBits, 2, D, 1>(walk, column, columns);
    if (rows == 3) tile<kBits, 3, D, 1>(walk, column, columns);
  }
}

template <int kBits, int I>
inline void store_quad(const char* step, char* to) {
  __m512i codes;
  quad_codes<Planes512, kBits, I>(step, 0, codes);
  _mm512_storeu_si512(to + I * kQuadBytes, codes);
}

// The codes of `panels` panels as those of 8 bits.
template <int kBits>
void expand(const PanelLayout& layout, const char* panel, std::size_t panels, char* to) {
  for (std::size_t p = 0; p < panels; ++p, panel += layout.bytes) {
    const char* from = panel + layout.codes;
    for (std::size_t s = 0; s < layout.steps; ++s, from += step_bytes_of(kBits), to += step_bytes_of(8)) {
      store_quad<kBits, 0>(from, to);
      store_quad<kBits, 1>(from, to);
      store_quad<kBits, 2>(from, to);
      store_quad<kBits, 3>(from, to);
    }
  }
}

// Widths of which many lines have tiles of their own; others are expanded to 8 bits for them, once a block of rows.
constexpr bool has_tiles(int bits) {
  return bits == 4 || bits == 8;
}

// ---- the row -------------------------------------------------------------------------------------------------------

template <int kBits, std::size_t D>
void run_digits(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void* scratch) {
  constexpr int kTileBits = has_tiles(kBits) ? kBits : 8;
  const bool is_thin = rows * D <= kThinLines;
  const Tiles tiles = tiles_of(rows, D, kLines);
  Walk walk{g, layout_of(g.shape), nullptr, 0, {}, m_begin};
  for (std::size_t column = n_begin; column < n_end;) {
    const bool single = is_thin || n_end - column <= kColumns;
    const std::size_t columns = smaller(n_end - column, single ? kColumns : kPanels * kColumns);
    const char* panel = static_cast<const char*>(g.packed) + column / kColumns * walk.layout.bytes;
    walk.codes = panel + walk.layout.codes;
    walk.pitch = walk.layout.bytes;
    if (!has_tiles(kBits) && !is_thin) {
      expand<kBits>(walk.layout, panel, single ? 1 : kPanels, static_cast<char*>(scratch));
      walk.codes = static_cast<const char*>(scratch);
      walk.pitch = walk.layout.steps * step_bytes_of(8);
    }
    for (std::size_t t = 0; t < tiles.count; ++t) {
      const std::size_t first = tiles.first(t), height = tiles.first(t + 1) - first;
      walk.x = staged_tile(walk.layout, staged, rows * D, first * D);
      walk.first_row = m_begin + first;
      if (is_thin) {
        thin_tile_of<kBits, D>(height, walk, column, columns);
      } else if (single) {
        tile_of<kTileBits, D, 1>(height, walk, column, columns);
      } else {
        tile_of<kTileBits, D, kPanels>(height, walk, column, columns);
      }
    }
    column += columns;
  }
}

std::size_t block_rows(const WgShape& s, int digits) {
  const std::size_t bytes = layout_of(s).steps * kStep * static_cast<std::size_t>(digits);
  const std::size_t fitting = bytes == 0 ? kMostRows : kStagedBytes / bytes;
  return fitting < kLeastRows ? kLeastRows : smaller(fitting, kMostRows);
}

std::size_t staged_bytes(const WgShape& s, int digits, std::size_t rows) {
  return staged_bytes_of(layout_of(s), rows * static_cast<std::size_t>(digits));
}

void stage(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end, void* staged) {
  stage_tiles(g, a, rows, begin, end, kLines, staged);
}

std::size_t scratch_bytes(const WgShape& s, int) {
  return has_tiles(s.bits) ? 0 : kPanels * layout_of(s).steps * step_bytes_of(8);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_wg/widths.h"

namespace ctk::kernels {

extern const GemmWgRow gemm_wg_12x32_x86_avx512vnni;
constinit const GemmWgRow gemm_wg_12x32_x86_avx512vnni =
    row_of(Isa::x86_avx512vnni, "gemm_wg_12x32_x86_avx512vnni", kPanels* kColumns);

}  // namespace ctk::kernels

#endif
