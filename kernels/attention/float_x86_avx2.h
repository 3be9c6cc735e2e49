// Scores and weighted sums of float and half caches: tiles of lines, so that what is read of the cache serves them all.
// Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/attention/lines_x86_avx2.h"

namespace ctk::kernels {
namespace {

struct LoadFloat {
  using Element = float;
  static __m256 at(const float* from) { return _mm256_load_ps(from); }
};

struct LoadHalf {
  using Element = std::uint16_t;
  static __m256 at(const std::uint16_t* from) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
  }
};

// So much of the cache is taken by all tiles of a block before the next: it stays in the first cache.
constexpr std::size_t kSliceBytes = 16384;

// Bytes ahead of their use that keys are fetched; values are as many as a slice. The processor's own prefetcher does
// not keep up with a loop that computes beside reading: 8 and 16 MB of cache take 0.5 to 0.8 of the time with this. A
// fetch past the end is harmless.
constexpr std::size_t kKeysAhead = 2048;

inline void fetch(const void* from, std::size_t ahead) {
  _mm_prefetch(static_cast<const char*>(from) + ahead, _MM_HINT_T0);
}

// Blocks of keys, and vectors of values, that R lines take at once: what 16 registers hold.
constexpr std::size_t blocks_of(std::size_t lines) {
  return lines == 1 ? 4 : lines <= 3 ? 2 : 1;
}
constexpr std::size_t vectors_of(std::size_t lines) {
  return lines == 1 ? 8 : lines <= 3 ? 4 : 2;
}

// scores[r * kChunk + ...] of B blocks of keys, for R lines whose queries are at q[r].
template <class Load, std::size_t R, std::size_t B>
void score_tile(const typename Load::Element* keys, std::size_t size, const float* const* q, float scale,
                float* scores) {
  __m256 sums[R][2 * B];
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t v = 0; v < 2 * B; ++v) sums[r][v] = _mm256_setzero_ps();
  }
  for (std::size_t d = 0; d < size; ++d) {
    const auto* at = keys + d * kBlock;
    CTK_UNROLL
    for (std::size_t b = 0; b < B; ++b) fetch(at + b * size * kBlock, kKeysAhead);
    if constexpr (B == 1) {
      const __m256 low = Load::at(at), high = Load::at(at + 8);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m256 x = _mm256_broadcast_ss(q[r] + d);
        sums[r][0] = fused(x, low, sums[r][0]);
        sums[r][1] = fused(x, high, sums[r][1]);
      }
    } else {
      __m256 x[R];
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) x[r] = _mm256_broadcast_ss(q[r] + d);
      CTK_UNROLL
      for (std::size_t v = 0; v < 2 * B; ++v) {
        const __m256 k = Load::at(at + v / 2 * size * kBlock + v % 2 * 8);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) sums[r][v] = fused(x[r], k, sums[r][v]);
      }
    }
  }
  const __m256 factor = _mm256_set1_ps(scale);
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t v = 0; v < 2 * B; ++v) {
      _mm256_store_ps(scores + r * kChunk + 8 * v, _mm256_mul_ps(sums[r][v], factor));
    }
  }
}

template <class Load, std::size_t R>
void score_lines(const typename Load::Element* keys, std::size_t size, std::size_t blocks, const float* const* q,
                 float scale, float* scores) {
  constexpr std::size_t kAtOnce = blocks_of(R);
  std::size_t b = 0;
  for (; b + kAtOnce <= blocks; b += kAtOnce) {
    score_tile<Load, R, kAtOnce>(keys + b * size * kBlock, size, q, scale, scores + b * kBlock);
  }
  for (; b < blocks; ++b) score_tile<Load, R, 1>(keys + b * size * kBlock, size, q, scale, scores + b * kBlock);
}

// acc[r * acc_pitch + ...] += weights[r * kChunk + t] * values[t * pitch + ...], t in [begin, end).
template <class Load, std::size_t R, std::size_t W>
void weigh_tile(const typename Load::Element* values, std::size_t pitch, const float* weights, std::size_t begin,
                std::size_t end, float* acc, std::size_t acc_pitch) {
  __m256 sums[R][W];
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t w = 0; w < W; ++w) sums[r][w] = _mm256_load_ps(acc + r * acc_pitch + 8 * w);
  }
  for (std::size_t t = begin; t < end; ++t) {
    const auto* at = values + t * pitch;
    fetch(at, kSliceBytes);
    if constexpr (R > W) {
      __m256 v[W];
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) v[w] = Load::at(at + 8 * w);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m256 p = _mm256_broadcast_ss(weights + r * kChunk + t);
        CTK_UNROLL
        for (std::size_t w = 0; w < W; ++w) sums[r][w] = fused(p, v[w], sums[r][w]);
      }
    } else {
      __m256 p[R];
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) p[r] = _mm256_broadcast_ss(weights + r * kChunk + t);
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) {
        const __m256 v = Load::at(at + 8 * w);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) sums[r][w] = fused(p[r], v, sums[r][w]);
      }
    }
  }
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t w = 0; w < W; ++w) _mm256_store_ps(acc + r * acc_pitch + 8 * w, sums[r][w]);
  }
}

// All elements of the values, from wide tiles down to single vectors.
template <class Load, std::size_t R, std::size_t W = vectors_of(R)>
void weigh_lines(const typename Load::Element* values, std::size_t pitch, std::size_t from, const float* weights,
                 std::size_t begin, std::size_t end, float* acc, std::size_t acc_pitch) {
  if (begin >= end) return;
  for (; from + 8 * W <= pitch; from += 8 * W) {
    weigh_tile<Load, R, W>(values + from, pitch, weights, begin, end, acc + from, acc_pitch);
  }
  if constexpr (W > 1) weigh_lines<Load, R, W / 2>(values, pitch, from, weights, begin, end, acc, acc_pitch);
}

// Of keys or values of `bytes` each.
inline std::size_t slice_tokens(std::size_t bytes) {
  const std::size_t tokens = kSliceBytes / bytes / (2 * kBlock) * (2 * kBlock);
  return tokens == 0 ? kBlock : tokens;
}

// Lines of a block against a chunk, keys [begin, end) of it. scores: [lines][kChunk]; counts: the keys of the chunk
// each line sees, ascending.
template <class Load>
struct FloatLines {
  const typename Load::Element* keys;
  const typename Load::Element* values;
  std::size_t key_size, value_pitch;
  float scale;
  const float* const* q;
  const std::size_t* counts;
  float* scores;
  float* acc;
  std::size_t acc_pitch;
  std::size_t begin, end;

  template <std::size_t R>
  void score(std::size_t line) const {
    const std::size_t seen = smaller(counts[line + R - 1], end);
    if (seen <= begin) return;
    score_lines<Load, R>(keys + begin * key_size, key_size, (seen - begin + kBlock - 1) / kBlock, q + line, scale,
                         scores + line * kChunk + begin);
  }

  template <std::size_t R>
  void weigh(std::size_t line) const {
    const std::size_t common = smaller(counts[line], end);
    float* lines = acc + line * acc_pitch;
    const float* weights = scores + line * kChunk;
    weigh_lines<Load, R>(values, value_pitch, 0, weights, begin, common, lines, acc_pitch);
    for (std::size_t r = 1; r < R; ++r) {  // what only the later ones see
      weigh_lines<Load, 1>(values, value_pitch, 0, weights + r * kChunk, common > begin ? common : begin,
                           smaller(counts[line + r], end), lines + r * acc_pitch, acc_pitch);
    }
  }
};

}  // namespace
}  // namespace ctk::kernels
