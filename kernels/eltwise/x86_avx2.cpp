// eltwise for AVX2: 32 codes or 8 floats a step. The last, shorter step of codes goes through a buffer on the stack.
#include "kernels/eltwise/eltwise.h"

#if defined(__x86_64__)

#include <cstring>

#include "kernels/floats_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kCodes = 32;

struct Limits {
  __m256 low, high;  // of the value before the zero point is added
  __m256i zero_point;
};

inline Limits limits_of(std::uint8_t zero_point, std::uint8_t low, std::uint8_t high) {
  return {_mm256_set1_ps(static_cast<float>(low - zero_point)), _mm256_set1_ps(static_cast<float>(high - zero_point)),
          _mm256_set1_epi32(zero_point)};
}

inline __m256i eight(const std::uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

// The limit second: a NaN becomes the limit.
inline __m256i round_codes(__m256 t, const Limits& l) {
  t = _mm256_min_ps(_mm256_max_ps(t, l.low), l.high);
  return _mm256_add_epi32(_mm256_cvtps_epi32(t), l.zero_point);
}

inline void store_codes(std::uint8_t* to, const __m256i (&q)[4]) {
  const __m256i low = _mm256_packs_epi32(q[0], q[1]), high = _mm256_packs_epi32(q[2], q[3]);
  const __m256i mixed = _mm256_packus_epi16(low, high);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(mixed, order));
}

struct Add {
  Limits limits;
  __m256i a_zero, b_zero;
  __m256 a_ratio, b_ratio;
  inline void operator()(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y) const {
    __m256i q[4];
    for (int v = 0; v < 4; ++v) {
      const __m256 left = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(eight(a + 8 * v), a_zero)), a_ratio);
      const __m256 right = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(eight(b + 8 * v), b_zero)), b_ratio);
      q[v] = round_codes(_mm256_add_ps(left, right), limits);
    }
    store_codes(y, q);
  }
};

struct Multiply {
  Limits limits;
  __m256i a_zero, b_zero;
  __m256 ratio;
  inline void operator()(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y) const {
    __m256i q[4];
    for (int v = 0; v < 4; ++v) {
      const __m256i product =
          _mm256_mullo_epi32(_mm256_sub_epi32(eight(a + 8 * v), a_zero), _mm256_sub_epi32(eight(b + 8 * v), b_zero));
      q[v] = round_codes(_mm256_mul_ps(_mm256_cvtepi32_ps(product), ratio), limits);
    }
    store_codes(y, q);
  }
};

template <class Rule>
inline void for_codes(const Rule& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y,
                      std::size_t count) {
  std::size_t i = 0;
  for (; i + kCodes <= count; i += kCodes) rule(a + i, b + i, y + i);
  if (i == count) return;
  std::uint8_t left[kCodes] = {}, right[kCodes] = {}, out[kCodes];
  std::memcpy(left, a + i, count - i);
  std::memcpy(right, b + i, count - i);
  rule(left, right, out);
  std::memcpy(y + i, out, count - i);
}

void add_u8(const AddU8& r, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  const Add rule{limits_of(r.zero_point, r.low, r.high), _mm256_set1_epi32(r.a_zero), _mm256_set1_epi32(r.b_zero),
                 _mm256_set1_ps(r.a_ratio), _mm256_set1_ps(r.b_ratio)};
  for_codes(rule, a, b, y, count);
}

void mul_u8(const MulU8& r, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  const Multiply rule{limits_of(r.zero_point, r.low, r.high), _mm256_set1_epi32(r.a_zero), _mm256_set1_epi32(r.b_zero),
                      _mm256_set1_ps(r.ratio)};
  for_codes(rule, a, b, y, count);
}

// The limit first: a NaN stays a NaN.
inline __m256 clamp(__m256 t, __m256 low, __m256 high) {
  return _mm256_min_ps(high, _mm256_max_ps(low, t));
}

void add_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  const __m256 least = _mm256_set1_ps(low), most = _mm256_set1_ps(high);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(y + i, clamp(_mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)), least, most));
  }
  if (i == count) return;
  const __m256i mask = mask_of(count - i);
  const __m256 sum = _mm256_add_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask));
  _mm256_maskstore_ps(y + i, mask, clamp(sum, least, most));
}

void mul_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  const __m256 least = _mm256_set1_ps(low), most = _mm256_set1_ps(high);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(y + i, clamp(_mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)), least, most));
  }
  if (i == count) return;
  const __m256i mask = mask_of(count - i);
  const __m256 product = _mm256_mul_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask));
  _mm256_maskstore_ps(y + i, mask, clamp(product, least, most));
}

void clamp_f32(const float* x, float low, float high, float* y, std::size_t count) {
  const __m256 least = _mm256_set1_ps(low), most = _mm256_set1_ps(high);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(y + i, clamp(_mm256_loadu_ps(x + i), least, most));
  if (i == count) return;
  const __m256i mask = mask_of(count - i);
  _mm256_maskstore_ps(y + i, mask, clamp(_mm256_maskload_ps(x + i, mask), least, most));
}

}  // namespace

const EltwiseRow eltwise_x86_avx2 = {Isa::x86_avx2, "eltwise_x86_avx2", add_u8, mul_u8, add_f32, mul_f32, clamp_f32};

}  // namespace ctk::kernels

#endif
