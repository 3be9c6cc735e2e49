// The integer epilogue on 16 columns of a row in one register, for sources of AVX-512. What does not depend on the
// width of a register is as in epilogue_x86_avx2.h. Everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

// What is the same for every element of a product.
struct Finish512 {
  __m512 low, high;          // around zero_point, or of the float output
  __m512 mid_low, mid_high;  // [0, 255] around mid_zero_point
  __m512 mid_ratio, residual_ratio;
  __m512i residual_zero, zero, low_code;
  __m512i zero_words, low_bytes, high_bytes;
  bool is_full;  // zero point 0 and codes 0-255, as after Relu: saturation is all the clamping there is
};

inline Finish512 finish512_of(const EpilogueInt& e) {
  const int zero = e.zero_point, mid = e.residual.mid_zero_point;
  Finish512 f;
  f.low = _mm512_set1_ps(e.to_float ? e.low_f : static_cast<float>(e.low - zero));
  f.high = _mm512_set1_ps(e.to_float ? e.high_f : static_cast<float>(e.high - zero));
  f.mid_low = _mm512_set1_ps(static_cast<float>(-mid));
  f.mid_high = _mm512_set1_ps(static_cast<float>(255 - mid));
  f.mid_ratio = _mm512_set1_ps(e.residual.mid_ratio);
  f.residual_ratio = _mm512_set1_ps(e.residual.residual_ratio);
  f.residual_zero = _mm512_set1_epi32(e.residual.residual_zero_point);
  f.zero = _mm512_set1_epi32(zero);
  f.low_code = _mm512_set1_epi32(e.low);
  f.zero_words = _mm512_set1_epi16(static_cast<short>(zero));
  f.low_bytes = _mm512_set1_epi8(static_cast<char>(e.low));
  f.high_bytes = _mm512_set1_epi8(static_cast<char>(e.high));
  f.is_full = zero == 0 && e.low == 0 && e.high == 255;
  return f;
}

inline __m512 add_residual(const Finish512& f, __m512 t, __m128i residual) {
  const __m512 clamped = _mm512_min_ps(f.mid_high, _mm512_max_ps(f.mid_low, t));
  const __m512 q1 = _mm512_cvtepi32_ps(_mm512_cvtps_epi32(clamped));
  const __m512 r = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(residual), f.residual_zero));
  return _mm512_add_ps(_mm512_mul_ps(q1, f.mid_ratio), _mm512_mul_ps(r, f.residual_ratio));
}

// Element (row, column..column+15) of a product's output; those in `exists` are read and written. The upper clamp is
// done in float, for a float above 2^31 would convert to the most negative integer; the lower one comes last, on codes.
inline void store_row512(const Finish512& f, const EpilogueInt& e, __m512i acc, __m512 multiplier, __mmask16 exists,
                         std::size_t row, std::size_t column, void* c, std::size_t c_stride) {
  const std::size_t at = row * c_stride + column;
  __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier);
  if (e.to_float) {
    t = _mm512_min_ps(f.high, _mm512_max_ps(f.low, t));
    return _mm512_mask_storeu_ps(static_cast<float*>(c) + at, exists, t);
  }
  if (e.residual.data != nullptr) {
    t = add_residual(f, t, _mm_maskz_loadu_epi8(exists, e.residual.data + row * e.residual.stride + column));
  }
  const __m512i code = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_min_ps(f.high, t)), f.zero);
  const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_max_epi32(f.low_code, code));
  _mm_mask_storeu_epi8(static_cast<std::uint8_t*>(c) + at, exists, bytes);
}

// Whether sums become codes the short way: to uint8, no residual, and |multiplier| < 1, which keeps the products within
// int32. The clamp may then wait for the codes: rounding is monotone and saturation keeps order.
inline bool is_plain512(const EpilogueInt& e, __m512 multiplier) {
  const __mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(multiplier), _mm512_set1_ps(1.0f), _CMP_LT_OQ);
  return !e.to_float && e.residual.data == nullptr && small == 0xffff;
}

inline __m512i plain_rounded(__m512i acc, __m512 multiplier) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier));
}

// Codes of four rows of 16 columns: row i in the i-th 128 bits.
inline __m512i plain_codes(const Finish512& f, const __m512i (&acc)[4], __m512 multiplier) {
  __m512i ab = _mm512_packs_epi32(plain_rounded(acc[0], multiplier), plain_rounded(acc[1], multiplier));
  __m512i cd = _mm512_packs_epi32(plain_rounded(acc[2], multiplier), plain_rounded(acc[3], multiplier));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  if (f.is_full) return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
  ab = _mm512_adds_epi16(ab, f.zero_words);
  cd = _mm512_adds_epi16(cd, f.zero_words);
  const __m512i codes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
  return _mm512_min_epu8(f.high_bytes, _mm512_max_epu8(f.low_bytes, codes));
}

// Rows row..row+M-1 of 16 columns. is_plain: as is_plain512() has it.
template <std::size_t M>
inline void store_rows512(const Finish512& f, const EpilogueInt& e, const __m512i (&acc)[M], __m512 multiplier,
                          bool is_plain, __mmask16 exists, std::size_t row, std::size_t column, void* c,
                          std::size_t c_stride) {
  if (!is_plain) {
#pragma GCC unroll 16  // all of them, or the sums end up in memory
    for (std::size_t i = 0; i < M; ++i) {
      store_row512(f, e, acc[i], multiplier, exists, row + i, column, c, c_stride);
    }
    return;
  }
  std::uint8_t* y = static_cast<std::uint8_t*>(c) + row * c_stride + column;
  CTK_UNROLL
  for (std::size_t i = 0; i < M; i += 4, y += 4 * c_stride) {
    constexpr std::size_t last = M - 1;
    const __m512i codes = plain_codes(
        f, {acc[i], acc[i + 1 < M ? i + 1 : last], acc[i + 2 < M ? i + 2 : last], acc[i + 3 < M ? i + 3 : last]},
        multiplier);
    _mm_mask_storeu_epi8(y, exists, _mm512_castsi512_si128(codes));
    if (i + 1 < M) _mm_mask_storeu_epi8(y + c_stride, exists, _mm512_extracti32x4_epi32(codes, 1));
    if (i + 2 < M) _mm_mask_storeu_epi8(y + 2 * c_stride, exists, _mm512_extracti32x4_epi32(codes, 2));
    if (i + 3 < M) _mm_mask_storeu_epi8(y + 3 * c_stride, exists, _mm512_extracti32x4_epi32(codes, 3));
  }
}

}  // namespace
}  // namespace ctk::kernels
