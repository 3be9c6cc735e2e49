// What the emulation (libsimde-dev) lacks of AVX-512, element by element, for tests that compile a row's source with
// it. To be included before that source.
#pragma once

#define CTK_USE_SIMDE
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/dtype.h"
#include "kernels/intrinsics_x86.h"

namespace ctk::kernels::emulation {

template <class To, class From>
inline To bits(const From& from) {
  To to;
  static_assert(sizeof(to) == sizeof(from));
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

template <class T, std::size_t N>
struct Elements {
  T at[N];
};

using Ints16 = Elements<std::int32_t, 16>;
using Floats16 = Elements<float, 16>;

// Applies f to each element of a vector.
template <class ToVector, class To, class From, class Vector, class F>
inline ToVector each(const Vector& vector, F&& f) {
  const auto from = bits<Elements<From, 16>>(vector);
  Elements<To, 16> to;
  for (int i = 0; i < 16; ++i) to.at[i] = f(from.at[i]);
  return bits<ToVector>(to);
}

// The elements of `from` that the mask names; the others are 0 and not read.
template <class Vector, class T>
inline Vector masked_load(unsigned mask, const void* from) {
  Elements<T, 16> to = {};
  for (unsigned i = 0; i < 16; ++i) {
    if (mask >> i & 1) std::memcpy(&to.at[i], static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
  }
  return bits<Vector>(to);
}

template <class T, class Vector>
inline void masked_store(void* to, unsigned mask, const Vector& vector) {
  const auto from = bits<Elements<T, 16>>(vector);
  for (unsigned i = 0; i < 16; ++i) {
    if (mask >> i & 1) std::memcpy(static_cast<char*>(to) + i * sizeof(T), &from.at[i], sizeof(T));
  }
}

// Rounds to nearest even; beyond int32 the instruction gives the most negative one.
inline std::int32_t rounded(float x) {
  const double whole = std::nearbyint(static_cast<double>(x));
  return whole >= -2147483648.0 && whole <= 2147483647.0 ? static_cast<std::int32_t>(whole) : INT32_MIN;
}

}  // namespace ctk::kernels::emulation

using __mmask16 = std::uint16_t;

inline __m512i _mm512_cvtps_epi32(__m512 a) {
  return ctk::kernels::emulation::each<__m512i, std::int32_t, float>(a, ctk::kernels::emulation::rounded);
}
inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  return ctk::kernels::emulation::each<__m512, float, std::int32_t>(
      a, [](std::int32_t x) { return static_cast<float>(x); });
}
inline __m512i _mm512_cvtepu8_epi32(__m128i a) {
  return ctk::kernels::emulation::each<__m512i, std::int32_t, std::uint8_t>(
      a, [](std::uint8_t x) { return std::int32_t{x}; });
}
#undef _mm512_fmadd_ps  // the emulation rounds twice
inline __m512 _mm512_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  using ctk::kernels::emulation::Floats16;
  const auto x = ctk::kernels::emulation::bits<Floats16>(a), y = ctk::kernels::emulation::bits<Floats16>(b);
  auto sum = ctk::kernels::emulation::bits<Floats16>(c);
  for (int i = 0; i < 16; ++i) sum.at[i] = std::fma(x.at[i], y.at[i], sum.at[i]);
  return ctk::kernels::emulation::bits<__m512>(sum);
}
inline __m512i _mm512_srai_epi32(__m512i a, int by) {
  return ctk::kernels::emulation::each<__m512i, std::int32_t, std::int32_t>(a, [&](std::int32_t x) { return x >> by; });
}
#undef _mm512_madd_epi16  // the emulation gives this name to the masked form
inline __m512i _mm512_madd_epi16(__m512i a, __m512i b) {
  const auto x = ctk::kernels::emulation::bits<ctk::kernels::emulation::Elements<std::int16_t, 32>>(a);
  const auto y = ctk::kernels::emulation::bits<ctk::kernels::emulation::Elements<std::int16_t, 32>>(b);
  ctk::kernels::emulation::Ints16 to;
  for (int i = 0; i < 16; ++i) {
    to.at[i] = std::int32_t{x.at[2 * i]} * y.at[2 * i] + std::int32_t{x.at[2 * i + 1]} * y.at[2 * i + 1];
  }
  return ctk::kernels::emulation::bits<__m512i>(to);
}
inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
  return ctk::kernels::emulation::each<__m512i, std::int32_t, std::uint16_t>(
      a, [](std::uint16_t x) { return std::int32_t{x}; });
}
#undef _mm512_cvtph_ps
inline __m512 _mm512_cvtph_ps(__m256i a) {
  return ctk::kernels::emulation::each<__m512, float, std::uint16_t>(a, ctk::half_to_float);
}
#if !defined(_MM_FROUND_NO_EXC)
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#endif
inline unsigned short _cvtss_sh(float a, int) {
  return ctk::float_to_half(a);
}
inline __m512i _mm512_cvtepu8_epi16(__m256i a) {
  const auto from = ctk::kernels::emulation::bits<ctk::kernels::emulation::Elements<std::uint8_t, 32>>(a);
  ctk::kernels::emulation::Elements<std::int16_t, 32> to;
  for (int i = 0; i < 32; ++i) to.at[i] = from.at[i];
  return ctk::kernels::emulation::bits<__m512i>(to);
}
inline __m128i _mm512_cvtepi32_epi8(__m512i a) {
  return ctk::kernels::emulation::each<__m128i, std::uint8_t, std::int32_t>(
      a, [](std::int32_t x) { return static_cast<std::uint8_t>(x); });
}
inline __m128i _mm_maskz_loadu_epi8(__mmask16 mask, const void* from) {
  return ctk::kernels::emulation::masked_load<__m128i, std::uint8_t>(mask, from);
}
inline void _mm_mask_storeu_epi8(void* to, __mmask16 mask, __m128i a) {
  ctk::kernels::emulation::masked_store<std::uint8_t>(to, mask, a);
}
inline void _mm512_mask_storeu_ps(void* to, __mmask16 mask, __m512 a) {
  ctk::kernels::emulation::masked_store<float>(to, mask, a);
}
inline __m512i _mm512_maskz_loadu_epi32(__mmask16 mask, const void* from) {
  return ctk::kernels::emulation::masked_load<__m512i, std::int32_t>(mask, from);
}
inline __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const void* from) {
  return ctk::kernels::emulation::masked_load<__m512, float>(mask, from);
}
