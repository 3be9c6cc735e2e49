// resize for AVX2: eight channels a step, their sums in two vectors of doubles. The channels left over at the end are a
// step of fewer lanes.
#include "kernels/resize/resize.h"

#if defined(__x86_64__)

#include "kernels/floats_x86_avx2.h"
#include "kernels/resize/walk.h"

namespace ctk::kernels {
namespace {

constexpr std::int64_t kLanes = 8;

inline Doubles weighted(double weight, const Doubles& of) {
  const __m256d w = _mm256_set1_pd(weight);
  return {_mm256_mul_pd(w, of.low), _mm256_mul_pd(w, of.high)};
}

inline __m256 floats_of(const Doubles& d) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(d.low)), _mm256_cvtpd_ps(d.high), 1);
}

// How elements are read and written: eight at once, or the first `rest`.
struct Floats {
  __m256i mask;  // of the rest

  inline __m256 load(const float* from) const { return _mm256_loadu_ps(from); }
  inline __m256 load_rest(const float* from) const { return _mm256_maskload_ps(from, mask); }
  inline void store(float* to, __m256 values) const { _mm256_storeu_ps(to, values); }
  inline void store_rest(float* to, __m256 values) const { _mm256_maskstore_ps(to, mask, values); }
};

struct Codes {
  __m256 in_scale, out_scale, low, high;
  __m256i in_zero, zero_point;
  std::size_t rest;

  inline __m256 reals(__m128i codes) const {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), in_zero)), in_scale);
  }
  inline __m128i codes_of(__m256 values) const {
    __m256 t = _mm256_div_ps(values, out_scale);
    t = _mm256_and_ps(t, _mm256_cmp_ps(t, t, _CMP_ORD_Q));  // NaN becomes 0, which is the zero point
    const __m256i q = _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(t, low), high)), zero_point);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    return _mm_packus_epi16(words, words);
  }
  inline __m256 load(const std::uint8_t* from) const {
    return reals(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  inline __m256 load_rest(const std::uint8_t* from) const {
    std::uint64_t codes = 0;
    for (std::size_t i = 0; i < rest; ++i) codes |= static_cast<std::uint64_t>(from[i]) << (8 * i);
    return reals(_mm_cvtsi64_si128(static_cast<long long>(codes)));
  }
  inline void store(std::uint8_t* to, __m256 values) const {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), codes_of(values));
  }
  inline void store_rest(std::uint8_t* to, __m256 values) const {
    auto codes = static_cast<std::uint64_t>(_mm_cvtsi128_si64(codes_of(values)));
    for (std::size_t i = 0; i < rest; ++i, codes >>= 8) to[i] = static_cast<std::uint8_t>(codes);
  }
};

// Eight channels of a pixel. Numbers of taps above 0 are known to the compiler.
template <int row_count, int column_count, bool is_rest, class Values, class T>
inline __m256 eight(const Values& values, const Taps& rows, const Taps& columns, const T* from) {
  Doubles sum{};
  for (int i = 0; i < (row_count > 0 ? row_count : rows.count); ++i) {
    Doubles line{};
    for (int j = 0; j < (column_count > 0 ? column_count : columns.count); ++j) {
      const T* at = from + rows.step[i] + columns.step[j];
      line = add(line, weighted(columns.weight[j], doubles_of(is_rest ? values.load_rest(at) : values.load(at))));
    }
    sum = add(sum, weighted(rows.weight[i], line));
  }
  return floats_of(sum);
}

template <int row_count, int column_count, class Values, class T>
inline void pixel(const Values& values, const Taps& rows, const Taps& columns, const T* from, T* to,
                  std::int64_t channels) {
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    values.store(to + c, eight<row_count, column_count, false>(values, rows, columns, from + c));
  }
  if (c < channels) values.store_rest(to + c, eight<row_count, column_count, true>(values, rows, columns, from + c));
}

template <class Values, class T>
inline void blend(const Values& values, const Resize& r, const T* x, T* y, std::int64_t row_begin,
                  std::int64_t row_end) {
  for_pixels(r, x, y, row_begin, row_end, [&](const Taps& rows, const Taps& columns, const T* from, T* to) {
    if (rows.count == 2 && columns.count == 2) {
      pixel<2, 2>(values, rows, columns, from, to, r.channels);
    } else if (rows.count == 4 && columns.count == 4) {
      pixel<4, 4>(values, rows, columns, from, to, r.channels);
    } else {
      pixel<0, 0>(values, rows, columns, from, to, r.channels);
    }
  });
}

void blend_f32(const Resize& r, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  blend(Floats{mask_of(static_cast<std::size_t>(r.channels % kLanes))}, r, x, y, row_begin, row_end);
}

void blend_u8(const Resize& r, const ResizeCodes& codes, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin,
              std::int64_t row_end) {
  const Codes values{_mm256_set1_ps(codes.in_scale),
                     _mm256_set1_ps(codes.out_scale),
                     _mm256_set1_ps(-static_cast<float>(codes.zero_point)),
                     _mm256_set1_ps(255.0f - static_cast<float>(codes.zero_point)),
                     _mm256_set1_epi32(codes.in_zero),
                     _mm256_set1_epi32(codes.zero_point),
                     static_cast<std::size_t>(r.channels % kLanes)};
  blend(values, r, x, y, row_begin, row_end);
}

// A pixel of at least 16 bytes; the last step goes back over bytes that the one before it moved.
inline void move_pixel(const char* from, char* to, std::int64_t bytes) {
  std::int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
  for (; i < bytes; i += 16) {
    const std::int64_t at = i + 16 <= bytes ? i : bytes - 16;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
}

void nearest(const Resize& r, std::size_t element_bytes, const void* x, void* y, std::int64_t row_begin,
             std::int64_t row_end) {
  move_rows(r, r.channels * static_cast<std::int64_t>(element_bytes), x, y, row_begin, row_end, move_pixel);
}

}  // namespace

const ResizeRow resize_x86_avx2 = {Isa::x86_avx2, "resize_x86_avx2", nearest, blend_f32, blend_u8};

}  // namespace ctk::kernels

#endif
