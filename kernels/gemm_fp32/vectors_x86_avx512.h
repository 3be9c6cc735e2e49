// Float products on 512 bits: tiles of up to 14 rows by 32 columns. For sources with AVX-512; internal linkage.
#pragma once

#include <cstddef>

#include "kernels/intrinsics_x86.h"

namespace ctk::kernels {
namespace {

using Vector = __m512;
constexpr std::size_t kLanes = 16, kRows = 14;
constexpr std::size_t kChunkK = 256;       // 32 kB of two panels
constexpr std::size_t kChunkedRows = 112;  // rows of a block when K is cut: their sums are kept on the stack
constexpr std::size_t kMostColumns = 64;   // of a tile

inline Vector load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Vector halves_at(const unsigned short* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
// Floats whose upper halves these are.
inline Vector uppers_at(const unsigned short* from) {
  const __m512i upper = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(upper, 16));
}
inline void store(float* to, Vector a) {
  _mm512_storeu_ps(to, a);
}
inline Vector every(float a) {
  return _mm512_set1_ps(a);
}
inline Vector fused(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Vector sum_of(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}
inline Vector least(Vector a, Vector b) {
  return _mm512_min_ps(a, b);
}
inline Vector most(Vector a, Vector b) {
  return _mm512_max_ps(a, b);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_fp32/tiles_x86.h"

namespace ctk::kernels {
namespace {

template <class Form>
constexpr Width kOne = {
    16,
    14,
    {nullptr, compute<Form, 1, 1>, compute<Form, 2, 1>, compute<Form, 3, 1>, compute<Form, 4, 1>, compute<Form, 5, 1>,
     compute<Form, 6, 1>, compute<Form, 7, 1>, compute<Form, 8, 1>, compute<Form, 9, 1>, compute<Form, 10, 1>,
     compute<Form, 11, 1>, compute<Form, 12, 1>, compute<Form, 13, 1>, compute<Form, 14, 1>}};
template <class Form>
constexpr Width kTwo = {
    32,
    14,
    {nullptr, compute<Form, 1, 2>, compute<Form, 2, 2>, compute<Form, 3, 2>, compute<Form, 4, 2>, compute<Form, 5, 2>,
     compute<Form, 6, 2>, compute<Form, 7, 2>, compute<Form, 8, 2>, compute<Form, 9, 2>, compute<Form, 10, 2>,
     compute<Form, 11, 2>, compute<Form, 12, 2>, compute<Form, 13, 2>, compute<Form, 14, 2>}};
template <class Form>
constexpr Width kFour = {64,
                         6,
                         {nullptr, compute<Form, 1, 4>, compute<Form, 2, 4>, compute<Form, 3, 4>, compute<Form, 4, 4>,
                          compute<Form, 5, 4>, compute<Form, 6, 4>}};
template <class Form>
constexpr Width kEight = {128, 2, {nullptr, compute<Form, 1, 8>, compute<Form, 2, 8>}};

template <class Form>
const Width& width_for(std::size_t rows, std::size_t columns) {
  if (columns <= 16) return kOne<Form>;
  if (rows <= 2 && columns >= 128) return kEight<Form>;
  if (rows <= 6 && columns >= 64) return kFour<Form>;
  return kTwo<Form>;
}

}  // namespace
}  // namespace ctk::kernels
