// The integer epilogue on 16 columns of one row, for sources of AVX2 and up. Everything has internal linkage: no other
// object may end up with this code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/epilogue.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

// What is the same for every element of a product.
struct Finish16 {
  __m256 low, high;          // [0, 255] around zero_point, or of the float output
  __m256 mid_low, mid_high;  // the same around mid_zero_point
  __m256 mid_ratio, residual_ratio;
  __m256i residual_zero;
  __m256i zero;    // int16
  __m128i low_u8;  // code clamp from below; the one from above is `high`
  __m256i low_codes, high_codes;
};

inline Finish16 finish16_of(const EpilogueInt& e) {
  const int zero = e.zero_point, mid = e.residual.mid_zero_point;
  Finish16 f;
  f.low = _mm256_set1_ps(e.to_float ? e.low_f : static_cast<float>(e.low - zero));
  f.high = _mm256_set1_ps(e.to_float ? e.high_f : static_cast<float>(e.high - zero));
  f.mid_low = _mm256_set1_ps(static_cast<float>(-mid));
  f.mid_high = _mm256_set1_ps(static_cast<float>(255 - mid));
  f.mid_ratio = _mm256_set1_ps(e.residual.mid_ratio);
  f.residual_ratio = _mm256_set1_ps(e.residual.residual_ratio);
  f.residual_zero = _mm256_set1_epi32(e.residual.residual_zero_point);
  f.zero = _mm256_set1_epi16(static_cast<short>(zero));
  f.low_u8 = _mm_set1_epi8(static_cast<char>(e.low));
  f.low_codes = _mm256_set1_epi8(static_cast<char>(e.low));
  f.high_codes = _mm256_set1_epi8(static_cast<char>(e.high));
  return f;
}

inline __m256 add_residual(const Finish16& f, __m256 t, __m128i residual) {
  const __m256 clamped = _mm256_min_ps(f.mid_high, _mm256_max_ps(f.mid_low, t));
  const __m256 q1 = _mm256_cvtepi32_ps(_mm256_cvtps_epi32(clamped));
  const __m256 r = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepu8_epi32(residual), f.residual_zero));
  return _mm256_add_ps(_mm256_mul_ps(q1, f.mid_ratio), _mm256_mul_ps(r, f.residual_ratio));
}

// Sums of columns 0-7 and 8-15 times their multipliers, to float.
inline void finish16_f32(const Finish16& f, __m256i acc0, __m256i acc1, __m256 multiplier0, __m256 multiplier1,
                         float* y) {
  const __m256 t0 = _mm256_max_ps(f.low, _mm256_mul_ps(_mm256_cvtepi32_ps(acc0), multiplier0));
  const __m256 t1 = _mm256_max_ps(f.low, _mm256_mul_ps(_mm256_cvtepi32_ps(acc1), multiplier1));
  _mm256_storeu_ps(y, _mm256_min_ps(f.high, t0));
  _mm256_storeu_ps(y + 8, _mm256_min_ps(f.high, t1));
}

// The same to uint8; residual: 16 codes or null. The upper clamp is done in float, for a float above 2^31 would convert
// to the most negative integer. The lower one comes last, on codes: rounding is monotone and saturation keeps order.
inline __m128i finish16_u8(const Finish16& f, __m256i acc0, __m256i acc1, __m256 multiplier0, __m256 multiplier1,
                           const std::uint8_t* residual) {
  __m256 t0 = _mm256_mul_ps(_mm256_cvtepi32_ps(acc0), multiplier0);
  __m256 t1 = _mm256_mul_ps(_mm256_cvtepi32_ps(acc1), multiplier1);
  if (residual != nullptr) {
    const __m128i r = _mm_loadu_si128(reinterpret_cast<const __m128i*>(residual));
    t0 = add_residual(f, t0, r);
    t1 = add_residual(f, t1, _mm_srli_si128(r, 8));
  }
  const __m256i i0 = _mm256_cvtps_epi32(_mm256_min_ps(f.high, t0));
  const __m256i i1 = _mm256_cvtps_epi32(_mm256_min_ps(f.high, t1));
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(i0, i1), f.zero);
  const __m256i bytes = _mm256_packus_epi16(words, words);  // columns 0-3 8-11 .. | 4-7 12-15 ..
  const __m128i codes = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  return _mm_max_epu8(codes, f.low_u8);
}

// The last 1..15 columns go through a buffer, so that nothing past them is read or written.
inline void finish16_tail(const Finish16& f, const EpilogueInt& e, __m256i acc0, __m256i acc1, __m256 multiplier0,
                          __m256 multiplier1, const std::uint8_t* residual, std::size_t columns, void* y) {
  if (e.to_float) {
    float buffer[16];
    finish16_f32(f, acc0, acc1, multiplier0, multiplier1, buffer);
    std::memcpy(y, buffer, columns * sizeof(float));
    return;
  }
  std::uint8_t buffer[16] = {};
  if (residual != nullptr) std::memcpy(buffer, residual, columns);
  const __m128i codes = finish16_u8(f, acc0, acc1, multiplier0, multiplier1, residual != nullptr ? buffer : nullptr);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(buffer), codes);
  std::memcpy(y, buffer, columns);
}

// Element (row, column..column+15) of a product's output; `columns` (1..16) of them exist.
inline void store16(const Finish16& f, const EpilogueInt& e, __m256i acc0, __m256i acc1, __m256 multiplier0,
                    __m256 multiplier1, std::size_t row, std::size_t column, std::size_t columns, void* c,
                    std::size_t c_stride) {
  const std::uint8_t* residual =
      e.residual.data != nullptr ? e.residual.data + row * e.residual.stride + column : nullptr;
  const std::size_t at = row * c_stride + column;
  void* y = e.to_float ? static_cast<void*>(static_cast<float*>(c) + at) : static_cast<std::uint8_t*>(c) + at;
  if (columns < 16) {
    finish16_tail(f, e, acc0, acc1, multiplier0, multiplier1, residual, columns, y);
  } else if (e.to_float) {
    finish16_f32(f, acc0, acc1, multiplier0, multiplier1, static_cast<float*>(y));
  } else {
    const __m128i codes = finish16_u8(f, acc0, acc1, multiplier0, multiplier1, residual);
    _mm_storeu_si128(static_cast<__m128i*>(y), codes);
  }
}

// Whether sums of 16 columns become codes the short way: to uint8, no residual, and |multiplier| < 1, which keeps the
// products within int32. The upper clamp may then wait for the codes: rounding is monotone and saturation keeps order.
inline bool is_plain16(const EpilogueInt& e, __m256 multiplier0, __m256 multiplier1, std::size_t columns) {
  const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
  const __m256 small0 = _mm256_cmp_ps(_mm256_andnot_ps(sign, multiplier0), one, _CMP_LT_OQ);
  const __m256 small1 = _mm256_cmp_ps(_mm256_andnot_ps(sign, multiplier1), one, _CMP_LT_OQ);
  return columns == 16 && !e.to_float && e.residual.data == nullptr &&
         _mm256_movemask_ps(_mm256_and_ps(small0, small1)) == 0xff;
}

// Columns 0-3 8-11 | 4-7 12-15 as int16.
inline __m256i plain16_words(const Finish16& f, __m256i acc0, __m256i acc1, __m256 multiplier0, __m256 multiplier1) {
  const __m256i i0 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(acc0), multiplier0));
  const __m256i i1 = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(acc1), multiplier1));
  return _mm256_adds_epi16(_mm256_packs_epi32(i0, i1), f.zero);
}

// Two such rows, 16 codes each: `a` in the lower half, `b` in the upper.
inline __m256i plain16_codes(const Finish16& f, __m256i a, __m256i b) {
  const __m256i mixed = _mm256_packus_epi16(a, b);
  const __m256i codes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  return _mm256_min_epu8(f.high_codes, _mm256_max_epu8(f.low_codes, codes));
}

// Rows row..row+M-1 of 16 columns. is_plain: as is_plain16() has it.
template <std::size_t M>
inline void store_rows16(const Finish16& f, const EpilogueInt& e, const __m256i (&acc)[M][2], __m256 multiplier0,
                         __m256 multiplier1, bool is_plain, std::size_t row, std::size_t column, std::size_t columns,
                         void* c, std::size_t c_stride) {
  if (!is_plain) {
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) {
      store16(f, e, acc[i][0], acc[i][1], multiplier0, multiplier1, row + i, column, columns, c, c_stride);
    }
    return;
  }
  std::uint8_t* y = static_cast<std::uint8_t*>(c) + row * c_stride + column;
  CTK_UNROLL
  for (std::size_t i = 0; i < M; i += 2, y += 2 * c_stride) {
    const std::size_t next = i + 1 < M ? i + 1 : i;
    const __m256i a = plain16_words(f, acc[i][0], acc[i][1], multiplier0, multiplier1);
    const __m256i b = next == i ? a : plain16_words(f, acc[next][0], acc[next][1], multiplier0, multiplier1);
    const __m256i codes = plain16_codes(f, a, b);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_castsi256_si128(codes));
    if (next != i) _mm_storeu_si128(reinterpret_cast<__m128i*>(y + c_stride), _mm256_extracti128_si256(codes, 1));
  }
}

}  // namespace
}  // namespace ctk::kernels
