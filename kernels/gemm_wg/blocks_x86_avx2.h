// What the x86 rows share beside the layout: cutting K into chunks whose codes, unpacked to bytes, stay in the first
// cache while all tiles of a block of rows pass over them, and the last step. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/stage_x86_avx2.h"

#if defined(CTK_USE_SIMDE)
#include <simde/x86/f16c.h>
#endif

namespace ctk::kernels {
namespace {

constexpr std::size_t kChunkK = 1024;                   // 16 KiB of a panel unpacked; 512 is 2% slower, 256 8%
constexpr std::size_t kBlockBytes = 256 * 1024;         // of staged activations: half of the second cache
constexpr std::size_t kLeastRows = 12, kMostRows = 60;  // of a block

// How far ahead of their use codes are fetched. The processor's own prefetcher does not keep up with a loop that
// computes beside reading: 4096 x 4096 from memory runs at 0.83 of plain reading without, at 1.0 and over with this; 1
// to 8 KiB are alike, three digits like it farther.
constexpr std::size_t kPrefetchBytes = 3072;

// Whole groups, as many as fit.
inline std::size_t chunk_groups_of(const PanelLayout& p) {
  const std::size_t fitting = p.group_steps == 0 ? 1 : kChunkK / (p.group_steps * kStep);
  return smaller(fitting == 0 ? 1 : fitting, p.groups);
}

// A panel's groups [begin, begin + groups), unpacked.
struct Chunk {
  const std::uint8_t* codes;                    // [quads][16 columns][4 k]
  const char* next;                             // packed codes of the chunk after it
  const float* scales;                          // [groups][16]
  const std::int32_t* zero_points;              // [groups][16], or null: corrections hold the 8 already
  std::size_t groups, group_steps, last_steps;  // last_steps: of the last group
};

struct ChunkMemory {
  std::uint8_t* codes;
  float* scales;
  std::int32_t* zero_points;
  float* sums;  // [rows][16]
};

inline std::size_t chunk_bytes(const PanelLayout& p, std::size_t rows) {
  const std::size_t groups = chunk_groups_of(p);
  return groups * p.group_steps * 2 * kStepBytes + 2 * groups * kColumns * sizeof(float) +
         rows * kColumns * sizeof(float);
}

inline ChunkMemory chunk_memory(const PanelLayout& p, void* scratch) {
  const std::size_t groups = chunk_groups_of(p);
  char* codes = static_cast<char*>(scratch);
  char* scales = codes + groups * p.group_steps * 2 * kStepBytes;
  char* zero_points = scales + groups * kColumns * sizeof(float);
  return {reinterpret_cast<std::uint8_t*>(codes), reinterpret_cast<float*>(scales),
          reinterpret_cast<std::int32_t*>(zero_points),
          reinterpret_cast<float*>(zero_points + groups * kColumns * sizeof(float))};
}

// a * b + c, rounded once.
inline __m256 fused(__m256 a, __m256 b, __m256 c) {
#if defined(CTK_USE_SIMDE)  // the emulation rounds twice
  float x[8], y[8], z[8];
  _mm256_storeu_ps(x, a);
  _mm256_storeu_ps(y, b);
  _mm256_storeu_ps(z, c);
  for (std::size_t i = 0; i < 8; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return _mm256_loadu_ps(z);
#else
  return _mm256_fmadd_ps(a, b, c);
#endif
}

[[gnu::always_inline]] inline __m256 scales_at(const char* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}

[[gnu::always_inline]] inline __m256i zero_points_at(const char* bytes) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
}

inline Chunk unpack_chunk(const PanelLayout& p, const char* panel, std::size_t begin, bool is_affine,
                          const ChunkMemory& to) {
  const std::size_t groups = smaller(chunk_groups_of(p), p.groups - begin);
  const std::size_t first = begin * p.group_steps, last = smaller((begin + groups) * p.group_steps, p.steps);
  const __m256i low = _mm256_set1_epi8(15);
  const char* from = panel + p.codes + first * kStepBytes;
  std::uint8_t* out = to.codes;
  for (std::size_t s = first; s < last; ++s, from += kStepBytes, out += 2 * kStepBytes) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32));
    __m256i* quads = reinterpret_cast<__m256i*>(out);
    _mm256_store_si256(quads, _mm256_and_si256(a, low));
    _mm256_store_si256(quads + 1, _mm256_and_si256(b, low));
    _mm256_store_si256(quads + 2, _mm256_and_si256(_mm256_srli_epi16(a, 4), low));
    _mm256_store_si256(quads + 3, _mm256_and_si256(_mm256_srli_epi16(b, 4), low));
  }
  const char* scales = panel + begin * kColumns * 2;
  for (std::size_t i = 0; i < groups * 2; ++i) _mm256_store_ps(to.scales + 8 * i, scales_at(scales + 16 * i));
  if (is_affine) {
    const char* points = panel + p.zero_points + begin * kColumns;
    for (std::size_t i = 0; i < groups * 2; ++i) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to.zero_points + 8 * i), zero_points_at(points + 8 * i));
    }
  }
  return {to.codes,
          from,
          to.scales,
          is_affine ? to.zero_points : nullptr,
          groups,
          p.group_steps,
          last - first - (groups - 1) * p.group_steps};
}

// Bias of 16 columns from `column` on, `columns` of which exist.
inline void load_bias(const EpilogueFloat& e, std::size_t column, std::size_t columns, __m256 (&bias)[2]) {
  bias[0] = bias[1] = _mm256_setzero_ps();
  if (e.bias == nullptr) return;
  bias[0] = load_at_most_8(e.bias + column, columns);
  if (columns > 8) bias[1] = load_at_most_8(e.bias + column + 8, columns - 8);
}

inline void finish(const GemmWg& g, std::size_t row, std::size_t column, std::size_t columns, const __m256 (&sums)[2]) {
  const EpilogueFloat& e = g.epilogue;
  const __m256 low = _mm256_set1_ps(e.low), high = _mm256_set1_ps(e.high);
  for (std::size_t half = 0; 8 * half < columns; ++half) {
    const std::size_t at = column + 8 * half, count = columns - 8 * half;
    __m256 y = sums[half];
    if (e.residual != nullptr) y = _mm256_add_ps(y, load_at_most_8(e.residual + row * e.residual_stride + at, count));
    // The limit first: min and max return their second operand when one is NaN.
    y = _mm256_min_ps(high, _mm256_max_ps(low, y));
    store_at_most_8(g.c + row * g.c_stride + at, count, y);
  }
}

}  // namespace
}  // namespace ctk::kernels
