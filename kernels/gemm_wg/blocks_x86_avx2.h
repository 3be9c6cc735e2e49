// What the x86 rows share beside the layout: cutting K into chunks whose codes, unpacked to bytes, stay in the first
// cache while all tiles of a block of rows pass over them, and the last step. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/gemm_wg/stage_x86_avx2.h"

#if defined(CTK_USE_SIMDE)
#include <simde/x86/f16c.h>
#endif

// What must be inlined for its sums to stay in registers, in sources so long that GCC stops of itself. The emulation is
// spared: it takes four times as long to compile then.
#if defined(CTK_USE_SIMDE)
#define CTK_INLINE inline
#else
#define CTK_INLINE [[gnu::always_inline]] inline
#endif

namespace ctk::kernels {
namespace {

constexpr std::size_t kChunkBytes = 16 * 1024;          // of a panel unpacked; half of it is 2% slower, a quarter 8%
constexpr std::size_t kBlockBytes = 256 * 1024;         // of staged activations: half of the second cache
constexpr std::size_t kLeastRows = 12, kMostRows = 60;  // of a block

// How far ahead of their use codes are fetched. The processor's own prefetcher does not keep up with a loop that
// computes beside reading: 4096 x 4096 from memory runs at 0.83 of plain reading without, at 1.0 and over with this; 1
// to 8 KiB are alike, three digits like it farther.
constexpr std::size_t kPrefetchBytes = 3072, kLineBytes = 64;

// Fetches the step of so many bits that lies so far ahead.
template <int kBits>
[[gnu::always_inline]] inline void fetch_step(const char* codes) {
  for (std::size_t at = 0; at < step_bytes_of(kBits); at += kLineBytes) {
    _mm_prefetch(codes + at + kPrefetchBytes, _MM_HINT_T0);
  }
}

// Whole groups, as many as fit with `copies` bytes a code.
inline std::size_t chunk_groups_of(const PanelLayout& p, std::size_t copies) {
  const std::size_t fitting = p.group_steps == 0 ? 1 : kChunkBytes / (copies * p.group_steps * kQuads * kQuadBytes);
  return smaller(fitting == 0 ? 1 : fitting, p.groups);
}

// How codes lie in a chunk: a byte each, lower and upper halves apart, or words in pairs: [quads][2 pairs][16
// columns][2].
enum class Form { bytes, halves, words };

// Bytes a code takes in a chunk.
constexpr std::size_t copies_of(Form form) {
  return form == Form::bytes ? 1 : 2;
}

// A panel's groups [begin, begin + groups), unpacked.
struct Chunk {
  const std::uint8_t* codes;                    // bytes: [quads][16 columns][4 k]
  std::size_t high;                             // split codes: their upper halves are so many bytes behind the lower
  const char* next;                             // packed codes of the chunk after it
  const float* scales;                          // [groups][16]
  const std::int32_t* zero_points;              // [groups][16], or null: corrections hold it already
  std::size_t groups, group_steps, last_steps;  // last_steps: of the last group
  bool is_whole;                                // digits are summed as one
};

struct ChunkMemory {
  std::uint8_t* codes;
  float* scales;
  std::int32_t* zero_points;
  float* sums;  // [rows][16]
};

inline std::size_t chunk_code_bytes(const PanelLayout& p, std::size_t copies) {
  return chunk_groups_of(p, copies) * p.group_steps * kQuads * kQuadBytes;
}

inline std::size_t chunk_bytes(const PanelLayout& p, std::size_t copies, std::size_t rows) {
  return copies * chunk_code_bytes(p, copies) + 2 * chunk_groups_of(p, copies) * kColumns * sizeof(float) +
         rows * kColumns * sizeof(float);
}

inline ChunkMemory chunk_memory(const PanelLayout& p, std::size_t copies, void* scratch) {
  const std::size_t groups = chunk_groups_of(p, copies);
  char* codes = static_cast<char*>(scratch);
  char* scales = codes + copies * chunk_code_bytes(p, copies);
  char* zero_points = scales + groups * kColumns * sizeof(float);
  return {reinterpret_cast<std::uint8_t*>(codes), reinterpret_cast<float*>(scales),
          reinterpret_cast<std::int32_t*>(zero_points),
          reinterpret_cast<float*>(zero_points + groups * kColumns * sizeof(float))};
}

[[gnu::always_inline]] inline __m256 scales_at(const char* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}

[[gnu::always_inline]] inline __m256i zero_points_at(const char* bytes) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
}

// Codes as 256-bit vectors, two a quad (panels.h).
struct Planes256 {
  using Vector = __m256i;

  [[gnu::always_inline]] static Vector load(const char* at) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
  }
  [[gnu::always_inline]] static Vector ones(const char* at, std::size_t part) {
    return part == 0 ? load(at) : _mm256_srli_epi16(load(at), 1);
  }
  [[gnu::always_inline]] static Vector upper_half(Vector v) { return masked(_mm256_srli_epi16(v, 4), 15); }
  [[gnu::always_inline]] static Vector masked(Vector v, int mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(mask)));
  }
  [[gnu::always_inline]] static Vector either(Vector a, Vector b) { return _mm256_or_si256(a, b); }

  template <int kBits>
  [[gnu::always_inline]] static void shift(Vector& v) {
    if constexpr (kBits > 0) v = _mm256_slli_epi16(v, kBits);
    if constexpr (kBits < 0) v = _mm256_srli_epi16(v, -kBits);
  }
};

// Eight columns of a quad as two vectors of pairs.
[[gnu::always_inline]] inline void store_pairs(__m256i codes, std::uint8_t* to) {
  const __m256i first = _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1, 1, -1, 4, -1,
                                         5, -1, 8, -1, 9, -1, 12, -1, 13, -1);
  const __m256i second = _mm256_setr_epi8(2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2, -1, 3, -1, 6,
                                          -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(codes, first));
  _mm256_store_si256(reinterpret_cast<__m256i*>(to + kQuadBytes), _mm256_shuffle_epi8(codes, second));
}

// Quad I of the step at `from` to its place in the step at `out`. Upper halves lie `high` bytes behind the lower.
template <int kBits, Form kForm, int I>
[[gnu::always_inline]] inline void unpack_quad(const char* from, std::uint8_t* out, std::size_t high) {
  CTK_UNROLL
  for (std::size_t part = 0; part < 2; ++part) {
    __m256i codes;
    quad_codes<Planes256, kBits, I>(from, part, codes);
    std::uint8_t* to = out + I * (kForm == Form::words ? 2 * kQuadBytes : kQuadBytes) + part * sizeof(__m256i);
    if constexpr (kForm == Form::words) {
      store_pairs(codes, to);
    } else if constexpr (kForm == Form::bytes) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), codes);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), Planes256::masked(codes, 15));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + high), Planes256::upper_half(codes));
    }
  }
}

template <int kBits, Form kForm>
inline Chunk unpack_chunk(const PanelLayout& p, const char* panel, std::size_t begin, bool is_affine,
                          const ChunkMemory& to) {
  constexpr std::size_t kStride = kForm == Form::words ? 2 : 1;  // halves lie apart
  const std::size_t groups = smaller(chunk_groups_of(p, copies_of(kForm)), p.groups - begin);
  const std::size_t first = begin * p.group_steps, last = smaller((begin + groups) * p.group_steps, p.steps);
  const std::size_t high = chunk_code_bytes(p, copies_of(kForm));
  const char* from = panel + p.codes + first * p.step_bytes;
  std::uint8_t* out = to.codes;
  for (std::size_t s = first; s < last; ++s, from += step_bytes_of(kBits), out += kStride * kQuads * kQuadBytes) {
    unpack_quad<kBits, kForm, 0>(from, out, high);
    unpack_quad<kBits, kForm, 1>(from, out, high);
    unpack_quad<kBits, kForm, 2>(from, out, high);
    unpack_quad<kBits, kForm, 3>(from, out, high);
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
          high,
          from,
          to.scales,
          is_affine ? to.zero_points : nullptr,
          groups,
          p.group_steps,
          last - first - (groups - 1) * p.group_steps,
          false};
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
