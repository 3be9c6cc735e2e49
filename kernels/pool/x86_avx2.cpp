// pool for AVX2: channels in blocks held in registers while all taps of the window pass. The channels left over at the
// end go one by one.
#include "kernels/pool/pool.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/pool/taps.h"

namespace ctk::kernels {
namespace {

inline __m256i load_codes(const std::uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

void max_u8(const ConvShape& s, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const std::uint8_t* first, std::uint8_t* out, std::int64_t, std::int64_t) {
                std::int64_t c = 0;
                for (; c + 32 <= s.in_channels; c += 32) {
                  __m256i best = _mm256_setzero_si256();
                  for_taps(w, p, first + c,
                           [&](const std::uint8_t* tap) { best = _mm256_max_epu8(best, load_codes(tap)); });
                  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + c), best);
                }
                for (; c + 8 <= s.in_channels; c += 8) {
                  __m128i best = _mm_setzero_si128();
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) {
                    best = _mm_max_epu8(best, _mm_loadl_epi64(reinterpret_cast<const __m128i*>(tap)));
                  });
                  _mm_storel_epi64(reinterpret_cast<__m128i*>(out + c), best);
                }
                for (; c < s.in_channels; ++c) {
                  std::uint8_t best = 0;
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { best = *tap > best ? *tap : best; });
                  out[c] = best;
                }
              });
}

void max_f32(const ConvShape& s, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  const float least = -__builtin_inff();
  for_windows(
      s, x, y, row_begin, row_end, [&](const Inside& w, const float* first, float* out, std::int64_t, std::int64_t) {
        std::int64_t c = 0;
        for (; c + 8 <= s.in_channels; c += 8) {
          __m256 best = _mm256_set1_ps(least);
          // The best so far second: it stays where the tap is NaN.
          for_taps(w, p, first + c, [&](const float* tap) { best = _mm256_max_ps(_mm256_loadu_ps(tap), best); });
          _mm256_storeu_ps(out + c, best);
        }
        for (; c < s.in_channels; ++c) {
          float best = least;
          for_taps(w, p, first + c, [&](const float* tap) { best = *tap > best ? *tap : best; });
          out[c] = best;
        }
      });
}

// Sums of 8 channels of codes -> codes. `taps` inside the image, divided by n.
struct AverageRule {
  __m256 ratio, n, low, high;
  __m256i zero_point, in_zero_sum;  // in_zero * taps inside
};

inline __m256i average_codes(const AverageRule& r, __m256i sum) {
  const __m256 s = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, r.in_zero_sum));
  const __m256 t = _mm256_div_ps(_mm256_mul_ps(s, r.ratio), r.n);
  const __m256 clamped = _mm256_min_ps(_mm256_max_ps(t, r.low), r.high);
  return _mm256_add_epi32(_mm256_cvtps_epi32(clamped), r.zero_point);
}

void average_u8(const ConvShape& s, bool count_include_pad, const AverageU8& rule, const std::uint8_t* x,
                std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  AverageRule r;
  r.ratio = _mm256_set1_ps(rule.ratio);
  r.low = _mm256_set1_ps(static_cast<float>(rule.low - rule.zero_point));
  r.high = _mm256_set1_ps(static_cast<float>(rule.high - rule.zero_point));
  r.zero_point = _mm256_set1_epi32(rule.zero_point);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const std::uint8_t* first, std::uint8_t* out, std::int64_t oy, std::int64_t ox) {
                const std::int64_t taps = (w.ky_end - w.ky_begin) * (w.kx_end - w.kx_begin);
                r.n = _mm256_set1_ps(static_cast<float>(pool_divisor(s, count_include_pad, oy, ox)));
                r.in_zero_sum = _mm256_set1_epi32(static_cast<int>(taps) * rule.in_zero);
                std::int64_t c = 0;
                for (; c + 16 <= s.in_channels; c += 16) {
                  __m256i low = _mm256_setzero_si256(), high = low, narrow = low;
                  int until_full = 257;  // 257 * 255 = 65535 still fits into 16 bits
                  auto widen = [&] {
                    low = _mm256_add_epi32(low, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(narrow)));
                    high = _mm256_add_epi32(high, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(narrow, 1)));
                    narrow = _mm256_setzero_si256();
                    until_full = 257;
                  };
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) {
                    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tap));
                    narrow = _mm256_add_epi16(narrow, _mm256_cvtepu8_epi16(codes));
                    if (--until_full == 0) widen();
                  });
                  widen();
                  const __m256i q = _mm256_packs_epi32(average_codes(r, low), average_codes(r, high));
                  const __m256i words = _mm256_permute4x64_epi64(q, 0xd8);
                  const __m128i bytes =
                      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
                  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c), bytes);
                }
                for (; c < s.in_channels; ++c) {
                  int sum = 0;
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { sum += *tap; });
                  const __m256i q = average_codes(r, _mm256_set1_epi32(sum));
                  out[c] = static_cast<std::uint8_t>(_mm256_extract_epi32(q, 0));
                }
              });
}

void average_f32(const ConvShape& s, bool count_include_pad, const float* x, float* y, std::int64_t row_begin,
                 std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const float* first, float* out, std::int64_t oy, std::int64_t ox) {
                const float n = static_cast<float>(pool_divisor(s, count_include_pad, oy, ox));
                std::int64_t c = 0;
                for (; c + 32 <= s.in_channels; c += 32) {
                  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
                  for_taps(w, p, first + c, [&](const float* tap) {
                    for (int v = 0; v < 4; ++v) sum[v] = _mm256_add_ps(sum[v], _mm256_loadu_ps(tap + 8 * v));
                  });
                  for (int v = 0; v < 4; ++v)
                    _mm256_storeu_ps(out + c + 8 * v, _mm256_div_ps(sum[v], _mm256_set1_ps(n)));
                }
                for (; c + 8 <= s.in_channels; c += 8) {
                  __m256 sum = _mm256_setzero_ps();
                  for_taps(w, p, first + c, [&](const float* tap) { sum = _mm256_add_ps(sum, _mm256_loadu_ps(tap)); });
                  _mm256_storeu_ps(out + c, _mm256_div_ps(sum, _mm256_set1_ps(n)));
                }
                for (; c < s.in_channels; ++c) {
                  float sum = 0.0f;
                  for_taps(w, p, first + c, [&](const float* tap) { sum += *tap; });
                  out[c] = sum / n;
                }
              });
}

}  // namespace

const PoolRow pool_x86_avx2 = {Isa::x86_avx2, "pool_x86_avx2", max_u8, max_f32, average_u8, average_f32};

}  // namespace ctk::kernels

#endif
