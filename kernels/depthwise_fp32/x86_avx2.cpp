// depthwise_fp32 for AVX2 and FMA: eight channels a vector, one weight vector per tap shared by neighbouring pixels.
#include "kernels/depthwise_fp32/depthwise_fp32.h"

#if defined(__x86_64__)

#include <cstdint>

namespace ctk::kernels {
namespace {

constexpr std::int64_t kLanes = 8;

}  // namespace
}  // namespace ctk::kernels

#include "kernels/depthwise_fp32/walk.h"
#include "kernels/floats_x86_avx2.h"

namespace ctk::kernels {
namespace {

inline __m256 load(const float* from, bool is_whole, __m256i mask) {
  return is_whole ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask);
}

// Residual, clamp, store of channels [c, c + 8) of pixel `p`.
inline void finish(const Step& t, __m256 sum, float* y, std::int64_t p, std::int64_t c, bool is_whole, __m256i mask) {
  if (t.residual != nullptr) {
    sum = _mm256_add_ps(sum, load(t.residual + p * t.residual_stride + c, is_whole, mask));
  }
  // The limit first: min and max return their second operand when one is NaN.
  sum = _mm256_min_ps(_mm256_set1_ps(t.high), _mm256_max_ps(_mm256_set1_ps(t.low), sum));
  float* to = y + p * t.channels + c;
  if (is_whole) {
    _mm256_storeu_ps(to, sum);
  } else {
    _mm256_maskstore_ps(to, mask, sum);
  }
}

void run_pixel(const Step& t, const float* weights, const float* const* taps, std::int64_t tap_count, float* y) {
  const std::int64_t pitch = rounded(t.channels);
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= t.channels; c += 4 * kLanes) {
    __m256 sum[4];
    for (int v = 0; v < 4; ++v) sum[v] = t.bias != nullptr ? _mm256_loadu_ps(t.bias + c + 8 * v) : _mm256_setzero_ps();
    for (std::int64_t tap = 0; tap < tap_count; ++tap) {
      const float* x = taps[tap] + c;
      const float* w = weights + tap * pitch + c;
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        sum[v] = _mm256_fmadd_ps(_mm256_loadu_ps(x + 8 * v), _mm256_loadu_ps(w + 8 * v), sum[v]);
      }
    }
    for (int v = 0; v < 4; ++v) finish(t, sum[v], y, 0, c + 8 * v, true, _mm256_setzero_si256());
  }
  for (; c < t.channels; c += kLanes) {
    const bool is_whole = c + kLanes <= t.channels;
    const __m256i mask = mask_of(static_cast<std::size_t>(t.channels - c));
    __m256 sum = t.bias != nullptr ? load(t.bias + c, is_whole, mask) : _mm256_setzero_ps();
    for (std::int64_t tap = 0; tap < tap_count; ++tap) {
      sum = _mm256_fmadd_ps(load(taps[tap] + c, is_whole, mask), _mm256_loadu_ps(weights + tap * pitch + c), sum);
    }
    finish(t, sum, y, 0, c, is_whole, mask);
  }
}

template <int P, int S>
void run_inside(const Step& t, const float* weights, const float* x, std::int64_t row_size, float* y) {
  constexpr int kColumns = (P - 1) * S + 3;
  const std::int64_t pitch = rounded(t.channels);
  for (std::int64_t c = 0; c < t.channels; c += kLanes) {
    const bool is_whole = c + kLanes <= t.channels;
    const __m256i mask = mask_of(static_cast<std::size_t>(t.channels - c));
    __m256 sum[P];
    const __m256 bias = t.bias != nullptr ? load(t.bias + c, is_whole, mask) : _mm256_setzero_ps();
    for (int p = 0; p < P; ++p) sum[p] = bias;
#pragma GCC unroll 3
    for (int ky = 0; ky < 3; ++ky) {
      const float* row = x + ky * row_size + c;
      const float* w = weights + 3 * ky * pitch + c;
      const __m256 w0 = _mm256_loadu_ps(w), w1 = _mm256_loadu_ps(w + pitch), w2 = _mm256_loadu_ps(w + 2 * pitch);
      __m256 in[kColumns];
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) in[i] = load(row + i * t.channels, is_whole, mask);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        sum[p] = _mm256_fmadd_ps(in[p * S], w0, sum[p]);
        sum[p] = _mm256_fmadd_ps(in[p * S + 1], w1, sum[p]);
        sum[p] = _mm256_fmadd_ps(in[p * S + 2], w2, sum[p]);
      }
    }
    for (int p = 0; p < P; ++p) finish(t, sum[p], y, p, c, is_whole, mask);
  }
}

}  // namespace

const DepthwiseFloatRow depthwise_fp32_8_x86_avx2 = {
    Isa::x86_avx2, "depthwise_fp32_8_x86_avx2", packed_bytes, pack, scratch_bytes, run};

}  // namespace ctk::kernels

#endif
