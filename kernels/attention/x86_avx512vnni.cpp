// attention for AVX-512 VNNI: 32 products of an int8 cache in one step (vpdpwssd). Float and half caches are AVX2's:
// two 256-bit multiply-adds a cycle are as many as one of 512 bits.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/attention/rounding_x86_avx2.h"

namespace ctk::kernels {
namespace {

inline __m512i pair_at(const std::int16_t* from) {
  std::int32_t pair;
  __builtin_memcpy(&pair, from, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

#if defined(CTK_USE_SIMDE)  // it has no vpdpwssd
inline __m512i add_pairs(__m512i sum, __m512i a, __m512i pair) {
  return _mm512_add_epi32(sum, simde_mm512_madd_epi16(a, pair));
}
inline __m256i add_pairs(__m256i sum, __m256i a, __m256i pair) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, pair));
}
#else
inline __m512i add_pairs(__m512i sum, __m512i a, __m512i pair) {
  return _mm512_dpwssd_epi32(sum, a, pair);
}
inline __m256i add_pairs(__m256i sum, __m256i a, __m256i pair) {
  return _mm256_dpwssd_epi32(sum, a, pair);
}
#endif

// sums * (step * steps[0..15]) or sums * step, as floats.
inline void store_scaled(float* to, __m512i sums, float step, const float* steps) {
  for (int half = 0; half < 2; ++half) {
    __m256 factor = _mm256_set1_ps(step);
    if (steps != nullptr) factor = _mm256_mul_ps(factor, _mm256_loadu_ps(steps + 8 * half));
    const __m256i part = half == 0 ? _mm512_castsi512_si256(sums) : _mm512_extracti64x4_epi64(sums, 1);
    _mm256_store_ps(to + 8 * half, _mm256_mul_ps(_mm256_cvtepi32_ps(part), factor));
  }
}

inline __m512i widened(const std::int8_t* from) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// As in int8_x86_avx2.h.
struct IntLines {
  const std::int8_t* keys;
  const std::int8_t* values;
  const float* key_scales;
  std::size_t key_pitch, value_pitch;
  const std::int16_t* q;
  const float* steps;
  const std::size_t* counts;
  float* scores;
  const std::int16_t* weights;
  const float* weight_steps;
  float* acc;
  std::size_t acc_pitch;

  // B blocks of keys from token `t` on, a vector each.
  template <std::size_t R, std::size_t B>
  void score_tile(std::size_t line, std::size_t t) const {
    __m512i sums[R][B];
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CTK_UNROLL
      for (std::size_t b = 0; b < B; ++b) sums[r][b] = _mm512_setzero_si512();
    }
    for (std::size_t d = 0; d < key_pitch; d += 2) {
      __m512i k[B];
      CTK_UNROLL
      for (std::size_t b = 0; b < B; ++b) k[b] = widened(keys + (t + b * kBlock) * key_pitch + d * kBlock);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m512i x = pair_at(q + (line + r) * key_pitch + d);
        CTK_UNROLL
        for (std::size_t b = 0; b < B; ++b) sums[r][b] = add_pairs(sums[r][b], k[b], x);
      }
    }
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CTK_UNROLL
      for (std::size_t b = 0; b < B; ++b) {
        const std::size_t at = t + b * kBlock;
        store_scaled(scores + (line + r) * kChunk + at, sums[r][b], steps[line + r], key_scales + at);
      }
    }
  }

  template <std::size_t R>
  void score(std::size_t line) const {
    constexpr std::size_t kBlocks = R <= 3 ? 4 : 2;
    const std::size_t count = counts[line + R - 1];
    std::size_t t = 0;
    for (; t + (kBlocks - 1) * kBlock < count; t += kBlocks * kBlock) score_tile<R, kBlocks>(line, t);
    for (; t < count; t += kBlock) score_tile<R, 1>(line, t);
  }

  // W vectors of 16 values, from element `from` on.
  template <std::size_t R, std::size_t W>
  void weigh_tile(std::size_t line, std::size_t from) const {
    const std::size_t count = counts[line + R - 1];
    __m512i sums[R][W];
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) sums[r][w] = _mm512_setzero_si512();
    }
    for (std::size_t t = 0; t < count; t += 2) {
      __m512i v[W];
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) v[w] = widened(values + t * value_pitch + 2 * from + 32 * w);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m512i x = pair_at(weights + (line + r) * kChunk + t);
        CTK_UNROLL
        for (std::size_t w = 0; w < W; ++w) sums[r][w] = add_pairs(sums[r][w], v[w], x);
      }
    }
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      CTK_UNROLL
      for (std::size_t w = 0; w < W; ++w) {
        store_scaled(acc + (line + r) * acc_pitch + from + 16 * w, sums[r][w], weight_steps[line + r], nullptr);
      }
    }
  }

  // The last eight values.
  template <std::size_t R>
  void weigh_half(std::size_t line, std::size_t from) const {
    __m256i sums[R];
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) sums[r] = _mm256_setzero_si256();
    for (std::size_t t = 0; t < counts[line + R - 1]; t += 2) {
      const std::int8_t* at = values + t * value_pitch + 2 * from;
      const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m256i x = _mm512_castsi512_si256(pair_at(weights + (line + r) * kChunk + t));
        sums[r] = add_pairs(sums[r], v, x);
      }
    }
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m256 step = _mm256_set1_ps(weight_steps[line + r]);
      _mm256_store_ps(acc + (line + r) * acc_pitch + from, _mm256_mul_ps(_mm256_cvtepi32_ps(sums[r]), step));
    }
  }

  template <std::size_t R>
  void weigh(std::size_t line) const {
    constexpr std::size_t kVectors = R <= 3 ? 4 : 2;
    std::size_t from = 0;
    for (; from + 16 * kVectors <= value_pitch; from += 16 * kVectors) weigh_tile<R, kVectors>(line, from);
    for (; from + 16 <= value_pitch; from += 16) weigh_tile<R, 1>(line, from);
    if (from < value_pitch) weigh_half<R>(line, from);
  }
};

}  // namespace
}  // namespace ctk::kernels

#include "kernels/attention/attend_x86_avx2.h"

namespace ctk::kernels {

extern const AttentionRow attention_x86_avx512vnni;
constinit const AttentionRow attention_x86_avx512vnni{
    .isa = Isa::x86_avx512vnni,
    .name = "attention_x86_avx512vnni",
    .append = append,
    .scratch_bytes = scratch_bytes,
    .attend = attend,
    .join = join,
    .finish = finish,
};

}  // namespace ctk::kernels

#endif
