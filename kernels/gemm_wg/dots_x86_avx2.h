// What the loops of the 256-bit rows (thin_x86_avx2.h, thick_x86_avx2.h) share.
//
// The source that includes this gives `Dot`:
//   kMostBits                     codes of more bits are split into lower and upper halves of four, which are added up
//                                 apart: sum = lower + 16 * upper
//   quads(bits)                   quads a sum takes before it must be widened, at codes of so many bits
//   add(sum, w, x)                sum += products of codes and activations, four to a 32-bit lane
//   add_at(sum0, sum1, w0, w1, at)  the same twice, x being the quad at `at` in every lane; first_at(...): sum = ...
//   widened(sum, factor)          factor times sum as int32 lanes
//   kTakesWords                   many lines that are summed whole go by 16-bit products (wide_x86_avx2.h)
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

// How the bytes of codes of so many bits lie in a chunk.
constexpr Form bytes_form(int bits) {
  return is_split(bits) ? Form::halves : Form::bytes;
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

// Dots of the lower of two digits become those of the whole activations.
template <std::size_t V, std::size_t D>
CTK_INLINE void join_digits(Sums<V>& dots) {
  if constexpr (D == 2) {
    CTK_UNROLL
    for (std::size_t v = 0; v < V; v += D) {
      dots[v + 1][0] = _mm256_add_epi32(dots[v + 1][0], _mm256_slli_epi32(dots[v][0], 8));
      dots[v + 1][1] = _mm256_add_epi32(dots[v + 1][1], _mm256_slli_epi32(dots[v][1], 8));
    }
  }
}

// Chunk after chunk of every panel, each passed over by all tiles of the block. W: kForm, kTileLines and
// tile(rows, is_affine, chunk, staged, sums), which adds to sums [rows][16].
template <class W, int kBits, std::size_t D>
void by_chunks(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
               std::size_t n_end, void* scratch) {
  constexpr std::size_t kCopies = copies_of(W::kForm);
  const PanelLayout layout = layout_of(g.shape);
  const Tiles tiles = tiles_of(rows, D, W::kTileLines);
  const ChunkMemory memory = chunk_memory(layout, kCopies, scratch);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
    const std::size_t columns = smaller(kColumns, n_end - column);
    __m256 bias[2];
    load_bias(g.epilogue, column, columns, bias);
    for (std::size_t r = 0; r < rows; ++r) {
      _mm256_store_ps(memory.sums + r * kColumns, bias[0]);
      _mm256_store_ps(memory.sums + r * kColumns + 8, bias[1]);
    }
    for (std::size_t group = 0; group < layout.groups; group += chunk_groups_of(layout, kCopies)) {
      Chunk chunk = unpack_chunk<kBits, W::kForm>(layout, panel, group, g.shape.is_affine, memory);
      chunk.is_whole = g.shape.sums_whole(D);
      for (std::size_t t = 0; t < tiles.count; ++t) {
        const std::size_t first = tiles.first(t), height = tiles.first(t + 1) - first, lines = height * D;
        Staged x = staged_tile(layout, staged, rows * D, first * D);
        x.scales += group * lines;
        x.corrections += group * lines;
        x.codes += group * layout.group_steps * kStep * lines;
        W::tile(height, g.shape.is_affine, chunk, x, memory.sums + first * kColumns);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const __m256 sums[2] = {_mm256_load_ps(memory.sums + r * kColumns),
                              _mm256_load_ps(memory.sums + r * kColumns + 8)};
      finish(g, m_begin + r, column, columns, sums);
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
