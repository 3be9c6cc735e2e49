// Float products on 256 bits: tiles of up to 6 rows by 16 columns. 24 columns at the end go as 4 rows by three vectors.
// For sources with AVX2, FMA and F16C; internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace ctk::kernels {
namespace {

using Vector = __m256;
constexpr std::size_t kLanes = 8, kRows = 6;
constexpr std::size_t kChunkK = 320;
constexpr std::size_t kChunkedRows = 96;  // rows of a block when K is cut: their sums are kept on the stack
constexpr std::size_t kMostColumns = 24;  // of a tile with more than three rows

inline Vector load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline Vector halves_at(const unsigned short* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
// Floats whose upper halves these are.
inline Vector uppers_at(const unsigned short* from) {
  const __m256i upper = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(upper, 16));
}
inline void store(float* to, Vector a) {
  _mm256_storeu_ps(to, a);
}
inline Vector every(float a) {
  return _mm256_set1_ps(a);
}
inline Vector fused(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vector sum_of(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}
inline Vector least(Vector a, Vector b) {
  return _mm256_min_ps(a, b);
}
inline Vector most(Vector a, Vector b) {
  return _mm256_max_ps(a, b);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_fp32/tiles_x86.h"

namespace ctk::kernels {
namespace {

template <class Form>
constexpr Width kHalf = {8,
                         6,
                         {nullptr, compute<Form, 1, 1>, compute<Form, 2, 1>, compute<Form, 3, 1>, compute<Form, 4, 1>,
                          compute<Form, 5, 1>, compute<Form, 6, 1>}};
template <class Form>
constexpr Width kOne = {16,
                        6,
                        {nullptr, compute<Form, 1, 2>, compute<Form, 2, 2>, compute<Form, 3, 2>, compute<Form, 4, 2>,
                         compute<Form, 5, 2>, compute<Form, 6, 2>}};
template <class Form>
constexpr Width kOneAndHalf = {
    24, 4, {nullptr, compute<Form, 1, 3>, compute<Form, 2, 3>, compute<Form, 3, 3>, compute<Form, 4, 3>}};
template <class Form>
constexpr Width kTwo = {32, 3, {nullptr, compute<Form, 1, 4>, compute<Form, 2, 4>, compute<Form, 3, 4>}};
template <class Form>
constexpr Width kFour = {64, 1, {nullptr, compute<Form, 1, 8>}};

template <class Form>
const Width& width_for(std::size_t rows, std::size_t columns) {
  if (columns <= 8) return kHalf<Form>;
  if (columns > 16 && columns <= 24) return kOneAndHalf<Form>;
  if (rows == 1 && columns >= 64) return kFour<Form>;
  if (rows <= 3 && columns >= 32) return kTwo<Form>;
  return kOne<Form>;
}

}  // namespace
}  // namespace ctk::kernels
