// convert for AVX2: 32 codes a step; transposes in blocks of 8x8 floats and 16x16 bytes, with plain loops at the edges
// and for the few channels of a picture, where a block would be mostly edge.
#include "kernels/convert/convert.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/convert/transpose.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kCodes = 32;

struct Quantizer {
  __m256 scale, low, high;
  __m256i zero_point;

  inline void operator()(const float* x, std::uint8_t* y) const {
    __m256i q[4];
    for (int v = 0; v < 4; ++v) {
      __m256 t = _mm256_div_ps(_mm256_loadu_ps(x + 8 * v), scale);
      t = _mm256_and_ps(t, _mm256_cmp_ps(t, t, _CMP_ORD_Q));  // NaN becomes 0, which is the zero point
      t = _mm256_min_ps(_mm256_max_ps(t, low), high);
      q[v] = _mm256_add_epi32(_mm256_cvtps_epi32(t), zero_point);
    }
    const __m256i mixed = _mm256_packus_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm256_permutevar8x32_epi32(mixed, order));
  }
};

void quantize(const float* x, float scale, std::uint8_t zero_point, std::uint8_t* y, std::size_t count) {
  const Quantizer quantizer{_mm256_set1_ps(scale), _mm256_set1_ps(-static_cast<float>(zero_point)),
                            _mm256_set1_ps(255.0f - static_cast<float>(zero_point)), _mm256_set1_epi32(zero_point)};
  std::size_t i = 0;
  for (; i + kCodes <= count; i += kCodes) quantizer(x + i, y + i);
  if (i == count) return;
  float in[kCodes] = {};
  std::uint8_t out[kCodes];
  std::memcpy(in, x + i, (count - i) * sizeof(float));
  quantizer(in, out);
  std::memcpy(y + i, out, count - i);
}

void dequantize(const std::uint8_t* x, float scale, std::uint8_t zero_point, float* y, std::size_t count) {
  const __m256 step = _mm256_set1_ps(scale);
  const __m256i zero = _mm256_set1_epi32(zero_point);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + i)));
    _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(codes, zero)), step));
  }
  for (; i < count; ++i) y[i] = static_cast<float>(static_cast<int>(x[i]) - static_cast<int>(zero_point)) * scale;
}

// 8 rows of x -> 8 columns of y.
inline void transpose_8x8(const float* x, std::size_t x_stride, float* y, std::size_t y_stride) {
  __m256 a[8], b[8];
  for (std::size_t i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(x + i * x_stride);
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    a[4 * i] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0x44);
    a[4 * i + 1] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0xee);
    a[4 * i + 2] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0x44);
    a[4 * i + 3] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0xee);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    _mm256_storeu_ps(y + i * y_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(y + (i + 4) * y_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}

// 16 rows of x -> 16 columns of y: four rounds of interleaving row i with row i + 8 turn row and column bits around.
inline void transpose_16x16(const std::uint8_t* x, std::size_t x_stride, std::uint8_t* y, std::size_t y_stride) {
  __m128i a[16], b[16];
  for (std::size_t i = 0; i < 16; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * x_stride));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (int i = 0; i < 8; ++i) {
      a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]);
      a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
  }
  for (std::size_t i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i * y_stride), a[i]);
}

struct Floats {
  static constexpr std::size_t kSize = 8;
  static void turn(const float* x, std::size_t xs, float* y, std::size_t ys) { transpose_8x8(x, xs, y, ys); }
};
struct Bytes {
  static constexpr std::size_t kSize = 16;
  static void turn(const std::uint8_t* x, std::size_t xs, std::uint8_t* y, std::size_t ys) {
    transpose_16x16(x, xs, y, ys);
  }
};

void to_channels_last_f32(const float* x, float* y, std::size_t channels, std::size_t pixels) {
  transpose<Floats>(x, y, channels, pixels);
}
void to_channels_first_f32(const float* x, float* y, std::size_t channels, std::size_t pixels) {
  transpose<Floats>(x, y, pixels, channels);
}
void to_channels_last_u8(const std::uint8_t* x, std::uint8_t* y, std::size_t channels, std::size_t pixels) {
  transpose<Bytes>(x, y, channels, pixels);
}
void to_channels_first_u8(const std::uint8_t* x, std::uint8_t* y, std::size_t channels, std::size_t pixels) {
  transpose<Bytes>(x, y, pixels, channels);
}

}  // namespace

const ConvertRow convert_x86_avx2 = {Isa::x86_avx2,       "convert_x86_avx2",   quantize,
                                     dequantize,          to_channels_last_f32, to_channels_first_f32,
                                     to_channels_last_u8, to_channels_first_u8};

}  // namespace ctk::kernels

#endif
