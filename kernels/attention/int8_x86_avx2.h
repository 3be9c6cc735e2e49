// Scores and weighted sums of int8 caches: codes widened to 16 bits, multiplied in pairs, added in 32 bits; all exact.
// The includer defines Pairs before:
// add(sums, a, pair) and, on two vectors with the pair from memory, add_at(sum0, sum1, a0, a1, pair). Sources with AVX2
// only; internal linkage.
#pragma once

#include "kernels/attention/rounding_x86_avx2.h"

namespace ctk::kernels {
namespace {

inline __m256i pair_at(const std::int16_t* from) {
  std::int32_t pair;
  __builtin_memcpy(&pair, from, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

inline __m256i widened(const std::int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(from)));
}

// Lines of a block against a chunk. counts: the keys of the chunk each line sees, ascending.
struct IntLines {
  const std::int8_t* keys;
  const std::int8_t* values;
  const float* key_scales;
  std::size_t key_pitch, value_pitch;
  const std::int16_t* q;  // [lines][key_pitch]
  const float* steps;     // [lines], of a score per key scale
  const std::size_t* counts;
  float* scores;                // [lines][kChunk]
  const std::int16_t* weights;  // [lines][kChunk], 0 past what the line sees
  const float* weight_steps;    // [lines]
  float* acc;
  std::size_t acc_pitch;

  template <std::size_t R>
  void score(std::size_t line) const {
    const std::size_t count = counts[line + R - 1];
    for (std::size_t t = 0; t < count; t += kBlock) {
      const std::int8_t* at = keys + t * key_pitch;
      __m256i sums[R][2];
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
      for (std::size_t d = 0; d < key_pitch; d += 2, at += 2 * kBlock) {
        const __m256i low = widened(at), high = widened(at + kBlock);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) {
          Pairs::add_at(sums[r][0], sums[r][1], low, high, q + (line + r) * key_pitch + d);
        }
      }
      const __m256 low = _mm256_loadu_ps(key_scales + t), high = _mm256_loadu_ps(key_scales + t + 8);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m256 step = _mm256_set1_ps(steps[line + r]);
        float* to = scores + (line + r) * kChunk + t;
        _mm256_store_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][0]), _mm256_mul_ps(step, low)));
        _mm256_store_ps(to + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][1]), _mm256_mul_ps(step, high)));
      }
    }
  }

  // One or two vectors of values, from element `from` on.
  template <std::size_t R, std::size_t W>
  void weigh_tile(std::size_t line, std::size_t from) const {
    const std::size_t count = counts[line + R - 1];
    __m256i sums[R][W];
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) sums[r][w] = _mm256_setzero_si256();
    }
    const std::int8_t* at = values + 2 * from;
    for (std::size_t t = 0; t < count; t += 2, at += 2 * value_pitch) {
      const std::int16_t* pairs = weights + line * kChunk + t;
      if constexpr (W == 2) {
        const __m256i low = widened(at), high = widened(at + 16);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) Pairs::add_at(sums[r][0], sums[r][1], low, high, pairs + r * kChunk);
      } else {
        const __m256i v = widened(at);
        CTK_UNROLL
        for (std::size_t r = 0; r < R; ++r) sums[r][0] = Pairs::add(sums[r][0], v, pair_at(pairs + r * kChunk));
      }
    }
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m256 step = _mm256_set1_ps(weight_steps[line + r]);
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) {
        _mm256_store_ps(acc + (line + r) * acc_pitch + from + 8 * w,
                        _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r][w]), step));
      }
    }
  }

  template <std::size_t R>
  void weigh(std::size_t line) const {
    std::size_t from = 0;
    for (; from + 16 <= value_pitch; from += 16) weigh_tile<R, 2>(line, from);
    if (from < value_pitch) weigh_tile<R, 1>(line, from);
  }
};

}  // namespace
}  // namespace ctk::kernels
