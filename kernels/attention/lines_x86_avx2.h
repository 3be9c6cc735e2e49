// What each line does on its own: softmax, rounding, joining, writing out. Sources with AVX2 only; internal linkage.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/exp.h"
#include "kernels/floats_x86_avx2.h"
#include "kernels/intrinsics_x86.h"
#if defined(CTK_USE_SIMDE)
#define SIMDE_X86_F16C_ENABLE_NATIVE_ALIASES
#include <simde/x86/f16c.h>
#endif

namespace ctk::kernels {
namespace {

constexpr std::size_t kChunk = Attention::kChunk, kBlock = CacheShape::kBlock, kMostLines = AttentionBlock::kMostLines;
constexpr float kInfinity = __builtin_inff();

inline std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

inline std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

inline std::size_t state_pitch(const CacheShape& s) {
  return round_up(kStateHead + s.value_pitch(), 16);
}

inline __m256 exp_of(__m256 x) {
  const __m256 is_low = _mm256_cmp_ps(x, _mm256_set1_ps(kExpLow), _CMP_LT_OQ);
  const __m256i exponent = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)));
  const __m256 n = _mm256_cvtepi32_ps(exponent);
  __m256 r = fused(n, _mm256_set1_ps(-kLn2High), x);
  r = fused(n, _mm256_set1_ps(-kLn2Low), r);
  __m256 p = fused(_mm256_set1_ps(kExpC0), r, _mm256_set1_ps(kExpC1));
  p = fused(p, r, _mm256_set1_ps(kExpC2));
  p = fused(p, r, _mm256_set1_ps(kExpC3));
  p = fused(p, r, _mm256_set1_ps(kExpC4));
  p = fused(p, r, _mm256_set1_ps(kExpC5));
  p = _mm256_add_ps(fused(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  const __m256i two_to_n = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(is_low, _mm256_mul_ps(p, _mm256_castsi256_ps(two_to_n)));
}

inline float exp_of(float x) {
  return _mm256_cvtss_f32(exp_of(_mm256_set1_ps(x)));
}

// ---- softmax -------------------------------------------------------------------------------------------------------

inline float largest_of(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

// Lanes j + 8 onto j, then j + 4, j + 2, j + 1.
inline float sum_of(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// scores [count] -> exp(scores - m), zeros to the end of the block of 16. mask: [count] or null.
inline void exponentiate(std::size_t count, float* scores, const float* mask, float* state) {
  const std::size_t padded = round_up(count, kBlock);
  if (mask != nullptr) {
    for (std::size_t i = 0; i < count; i += 8) {
      const __m256 masked = _mm256_add_ps(_mm256_load_ps(scores + i), load_at_most_8(mask + i, count - i));
      _mm256_store_ps(scores + i, masked);
    }
  }
  for (std::size_t i = count; i < padded; ++i) scores[i] = -kInfinity;
  __m256 low = _mm256_set1_ps(-kInfinity), high = low;
  for (std::size_t i = 0; i < padded; i += kBlock) {  // the second operand is kept beside a NaN
    low = _mm256_max_ps(_mm256_load_ps(scores + i), low);
    high = _mm256_max_ps(_mm256_load_ps(scores + i + 8), high);
  }
  const float m = largest_of(_mm256_max_ps(low, high));
  const __m256 base = _mm256_set1_ps(m == -kInfinity ? 0.0f : m);
  __m256 sum_low = _mm256_setzero_ps(), sum_high = sum_low;
  for (std::size_t i = 0; i < padded; i += kBlock) {
    const __m256 p = exp_of(_mm256_sub_ps(_mm256_load_ps(scores + i), base));
    const __m256 q = exp_of(_mm256_sub_ps(_mm256_load_ps(scores + i + 8), base));
    _mm256_store_ps(scores + i, p);
    _mm256_store_ps(scores + i + 8, q);
    sum_low = _mm256_add_ps(sum_low, p);
    sum_high = _mm256_add_ps(sum_high, q);
  }
  state[0] = m;
  state[1] = sum_of(sum_low, sum_high);
}

// ---- states --------------------------------------------------------------------------------------------------------

inline void join(const CacheShape& s, std::size_t lines, float* states, const float* next) {
  const std::size_t pitch = state_pitch(s), end = kStateHead + s.value_pitch();
  for (std::size_t l = 0; l < lines; ++l, states += pitch, next += pitch) {
    if (next[1] == 0.0f) continue;
    if (states[1] == 0.0f) {
      for (std::size_t i = 0; i < end; i += 8) _mm256_store_ps(states + i, _mm256_load_ps(next + i));
      continue;
    }
    const float m = next[0] > states[0] ? next[0] : states[0];
    const float base = m == -kInfinity ? 0.0f : m;
    const float old_weight = exp_of(states[0] - base), new_weight = exp_of(next[0] - base);
    states[0] = m;
    states[1] = __builtin_fmaf(states[1], old_weight, next[1] * new_weight);
    const __m256 a = _mm256_set1_ps(old_weight), b = _mm256_set1_ps(new_weight);
    for (std::size_t i = kStateHead; i < end; i += 8) {
      const __m256 added = _mm256_mul_ps(_mm256_load_ps(next + i), b);
      _mm256_store_ps(states + i, fused(_mm256_load_ps(states + i), a, added));
    }
  }
}

inline void finish(const Attention& a, const AttentionBlock& b, const float* states) {
  const CacheShape& s = a.cache.shape;
  const std::size_t group = a.heads / s.kv_heads;
  for (std::size_t l = 0; l < b.lines; ++l, states += state_pitch(s)) {
    const std::size_t line = b.first_line + l, head = b.kv_head * group + line % group;
    float* y = a.y + line / group * a.y_stride + head * s.value_size;
    const __m256 inverse = _mm256_set1_ps(1.0f / states[1]);
    const __m256 is_empty = _mm256_cmp_ps(_mm256_set1_ps(states[1]), _mm256_setzero_ps(), _CMP_EQ_OQ);
    for (std::size_t d = 0; d < s.value_size; d += 8) {
      const __m256 value = _mm256_mul_ps(_mm256_load_ps(states + kStateHead + d), inverse);
      store_at_most_8(y + d, s.value_size - d, _mm256_andnot_ps(is_empty, value));
    }
  }
}

// ---- tiles ---------------------------------------------------------------------------------------------------------

constexpr std::size_t kTileLines = 6;

// Calls tile.run<R>(first) for tiles of R lines as even as can be, R at most kTileLines.
template <class Tile>
void for_each_tile(std::size_t lines, const Tile& tile) {
  const std::size_t tiles = (lines + kTileLines - 1) / kTileLines;
  for (std::size_t i = 0; i < tiles; ++i) {
    const std::size_t first = lines * i / tiles, height = lines * (i + 1) / tiles - first;
    if (height == 1) tile.template run<1>(first);
    if (height == 2) tile.template run<2>(first);
    if (height == 3) tile.template run<3>(first);
    if (height == 4) tile.template run<4>(first);
    if (height == 5) tile.template run<5>(first);
    if (height == 6) tile.template run<6>(first);
  }
}

template <class Lines>
struct ScoreTiles {
  const Lines& lines;
  template <std::size_t R>
  void run(std::size_t first) const {
    lines.template score<R>(first);
  }
};

template <class Lines>
struct WeighTiles {
  const Lines& lines;
  template <std::size_t R>
  void run(std::size_t first) const {
    lines.template weigh<R>(first);
  }
};

}  // namespace
}  // namespace ctk::kernels
