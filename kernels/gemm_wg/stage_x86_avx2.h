// Rounding of activations for the x86 rows, and how they lie then. Sources with AVX2 only; internal linkage.
//
// The rows of a block are taken in tiles as even as can be. A row's digit is a "line" of its own: a tile of h rows has
// V = h * digits lines, a row's highest digit first. All tiles together:
//   scales       float32 [groups][V], then the next tile's;     scale[m,g] * 256^d
//   corrections  int32   [groups][V], then the next tile's;     -sum_k q_d, times the zero point of symmetric weights
//   codes        int8    [4 steps][V][4], then the next tile's; zero past k
// As pairs, for products of 16 bits: both lines of a row have the row's scale, the first the correction of both, and a
// quad's lines hold its first and its second two activations, 16 bits each.
#pragma once

#include "kernels/floats_x86_avx2.h"
#include "kernels/gemm_wg/panels.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

// The tiles of a block; `lines`: most lines of one tile.
struct Tiles {
  std::size_t rows, count;
  std::size_t first(std::size_t tile) const { return rows * tile / count; }
};

inline Tiles tiles_of(std::size_t rows, std::size_t digits, std::size_t lines) {
  const std::size_t height = lines / digits;
  return {rows, (rows + height - 1) / height};
}

struct Staged {
  float* scales;
  std::int32_t* corrections;
  char* codes;
};

inline std::size_t staged_bytes_of(const PanelLayout& p, std::size_t lines) {
  return 2 * round_up_64(lines * p.groups * sizeof(float)) + round_up_64(lines * p.steps * kStep);
}

// Of the tile that starts `line` lines after the block's first.
inline Staged staged_tile(const PanelLayout& p, const void* staged, std::size_t lines, std::size_t line) {
  char* at = static_cast<char*>(const_cast<void*>(staged));
  const std::size_t part = round_up_64(lines * p.groups * sizeof(float));
  return {reinterpret_cast<float*>(at) + line * p.groups, reinterpret_cast<std::int32_t*>(at + part) + line * p.groups,
          at + 2 * part + line * p.steps * kStep};
}

// The largest magnitude's bits. Bits of magnitudes are in the order of the numbers, infinity and NaN above all.
inline __m256i magnitude_bits(__m256i top, const float* a, std::size_t count) {
  const __m256i sign_off = _mm256_set1_epi32(0x7fffffff);
  for (std::size_t i = 0; i < count; i += 8) {
    const __m256i bits = _mm256_castps_si256(load_at_most_8(a + i, count - i));
    top = _mm256_max_epi32(top, _mm256_and_si256(bits, sign_off));
  }
  return top;
}

inline std::int32_t largest_of(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

inline std::int32_t sum_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

struct RoundingStep {
  float scale, inverse;  // inverse 0: all codes are 0
};

inline RoundingStep rounding_step(std::int32_t top_bits, float limit) {
  const __m128 top = _mm_castsi128_ps(_mm_cvtsi32_si128(top_bits));
  if (top_bits >= 0x7f800000) return {_mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(0x7fc00000))), 0.0f};
  if (_mm_cvtss_f32(top) < 0x1p-100f) return {0.0f, 0.0f};
  return {_mm_cvtss_f32(top) / limit, limit / _mm_cvtss_f32(top)};
}

// One group of one row. `codes`: of the group's first quad and the row's first line; `pitch`: bytes from quad to quad.
// kPairs: of two digits, as pairs.
template <std::size_t D, bool kPairs>
void stage_group(const float* a, std::size_t count, RoundingStep step, std::size_t pitch, std::size_t symmetric_factor,
                 float* scales, std::int32_t* corrections, char* codes) {
  const __m256i low_bytes = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                                             -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i half = _mm256_set1_epi32(128);
  const __m256 inverse = _mm256_set1_ps(step.inverse);
  __m256i sums[D];
  for (std::size_t d = 0; d < D; ++d) sums[d] = _mm256_setzero_si256();
  const std::size_t padded = (count + kStep - 1) / kStep * kStep;
  for (std::size_t i = 0; i < padded; i += 2 * kQuad, codes += 2 * pitch) {
    __m256i q = _mm256_setzero_si256();
    if (step.inverse != 0.0f && i < count)
      q = _mm256_cvtps_epi32(_mm256_mul_ps(load_at_most_8(a + i, count - i), inverse));
    if constexpr (kPairs) {
      const __m256i words = _mm256_packs_epi32(q, q);  // of each four, twice
      _mm_storel_epi64(reinterpret_cast<__m128i*>(codes), _mm256_castsi256_si128(words));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + pitch), _mm256_extracti128_si256(words, 1));
      sums[0] = _mm256_add_epi32(sums[0], q);
      continue;
    }
    for (std::size_t d = D; d-- > 0;) {  // the lowest digit stands last
      const __m256i bytes = _mm256_shuffle_epi8(q, low_bytes);
      const std::int32_t first = _mm_cvtsi128_si32(_mm256_castsi256_si128(bytes));
      const std::int32_t second = _mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1));
      __builtin_memcpy(codes + d * kQuad, &first, kQuad);
      __builtin_memcpy(codes + pitch + d * kQuad, &second, kQuad);
      sums[d] = _mm256_add_epi32(sums[d], q);
      if (d > 0) q = _mm256_srai_epi32(_mm256_add_epi32(q, half), 8);
    }
  }
  if constexpr (kPairs) {
    scales[0] = scales[1] = step.scale;
    corrections[0] = static_cast<std::int32_t>(-static_cast<std::uint32_t>(sum_of(sums[0])) *
                                               static_cast<std::uint32_t>(symmetric_factor));
    corrections[1] = 0;
    return;
  }
  float weight = step.scale;
  std::uint32_t above = 0;
  for (std::size_t d = D; d-- > 0; weight *= 256.0f) scales[d] = weight;
  for (std::size_t d = 0; d < D; ++d) {  // a digit is what remains of q beside those above it
    const std::uint32_t sum = static_cast<std::uint32_t>(sum_of(sums[d]));
    const std::uint32_t factor = static_cast<std::uint32_t>(symmetric_factor);
    corrections[d] = static_cast<std::int32_t>((above * 256u - sum) * factor);
    above = sum;
  }
}

template <std::size_t D, bool kPairs = false>
void stage_rows(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end,
                std::size_t most_lines, void* staged) {
  const PanelLayout layout = layout_of(g.shape);
  const std::size_t k = g.shape.k, group = g.shape.group();
  const Tiles tiles = tiles_of(rows, D, most_lines);
  const std::size_t factor = g.shape.is_affine ? 1 : std::size_t{1} << (g.shape.bits - 1);
  const float limit = D == 1 ? 127.0f : D == 2 ? 127.0f * 256.0f : 127.0f * 65536.0f;
  for (std::size_t tile = 0; tile < tiles.count; ++tile) {
    const std::size_t first = tiles.first(tile), height = tiles.first(tile + 1) - first, lines = height * D;
    const Staged to = staged_tile(layout, staged, rows * D, first * D);
    for (std::size_t m = first < begin ? begin : first; m < first + height && m < end; ++m) {
      const float* row = a + m * g.a_stride;
      const std::size_t line = (m - first) * D;
      RoundingStep step{0.0f, 0.0f};
      if (g.per_token) step = rounding_step(largest_of(magnitude_bits(_mm256_setzero_si256(), row, k)), limit);
      for (std::size_t i = 0; i < layout.groups; ++i) {
        const float* from = row + i * group;
        const std::size_t count = smaller(group, k - i * group);
        if (!g.per_token) step = rounding_step(largest_of(magnitude_bits(_mm256_setzero_si256(), from, count)), limit);
        stage_group<D, kPairs>(from, count, step, lines * kQuad, factor, to.scales + i * lines + line,
                               to.corrections + i * lines + line,
                               to.codes + (i * layout.group_steps * kQuads * lines + line) * kQuad);
      }
    }
  }
}

inline void stage_tiles(const GemmWg& g, const float* a, std::size_t rows, std::size_t begin, std::size_t end,
                        std::size_t most_lines, void* staged) {
  if (g.digits == 1) stage_rows<1>(g, a, rows, begin, end, most_lines, staged);
  if (g.digits == 2) stage_rows<2>(g, a, rows, begin, end, most_lines, staged);
  if (g.digits == 3) stage_rows<3>(g, a, rows, begin, end, most_lines, staged);
}

}  // namespace
}  // namespace ctk::kernels
