// depthwise_fp32 for ARM's vectors: four channels a vector, one weight vector per tap shared by neighbouring pixels.
#include "kernels/depthwise_fp32/depthwise_fp32.h"

#if defined(__aarch64__)

#include "kernels/epilogue_arm_neon.h"

namespace ctk::kernels {
namespace {

constexpr std::int64_t kLanes = 4;

}  // namespace
}  // namespace ctk::kernels

#include "kernels/depthwise_fp32/walk.h"

namespace ctk::kernels {
namespace {

// Four floats, of which `count` exist; the others are 0.
inline float32x4_t load(const float* from, std::int64_t count) {
  if (count >= kLanes) return vld1q_f32(from);
  float buffer[kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i];
  return vld1q_f32(buffer);
}

inline float32x4_t bias_at(const Step& t, std::int64_t c) {
  return t.bias != nullptr ? load(t.bias + c, t.channels - c) : vdupq_n_f32(0.0f);
}

// Residual, clamp, store of channels [c, c + 4) of pixel `p`.
inline void finish(const Step& t, float32x4_t sum, float* y, std::int64_t p, std::int64_t c) {
  const std::int64_t count = t.channels - c;
  if (t.residual != nullptr) sum = vaddq_f32(sum, load(t.residual + p * t.residual_stride + c, count));
  sum = clamp_real(sum, vdupq_n_f32(t.low), vdupq_n_f32(t.high));
  float* to = y + p * t.channels + c;
  if (count >= kLanes) {
    vst1q_f32(to, sum);
    return;
  }
  float buffer[kLanes];
  vst1q_f32(buffer, sum);
  for (std::int64_t i = 0; i < count; ++i) to[i] = buffer[i];
}

void run_pixel(const Step& t, const float* weights, const float* const* taps, std::int64_t tap_count, float* y) {
  const std::int64_t pitch = rounded(t.channels);
  std::int64_t c = 0;
  for (; c + 4 * kLanes <= t.channels; c += 4 * kLanes) {
    float32x4_t sum[4];
    for (std::int64_t v = 0; v < 4; ++v) sum[v] = bias_at(t, c + 4 * v);
    for (std::int64_t tap = 0; tap < tap_count; ++tap) {
      const float* x = taps[tap] + c;
      const float* w = weights + tap * pitch + c;
      CTK_UNROLL
      for (int v = 0; v < 4; ++v) sum[v] = vfmaq_f32(sum[v], vld1q_f32(x + 4 * v), vld1q_f32(w + 4 * v));
    }
    for (std::int64_t v = 0; v < 4; ++v) finish(t, sum[v], y, 0, c + 4 * v);
  }
  for (; c < t.channels; c += kLanes) {
    float32x4_t sum = bias_at(t, c);
    for (std::int64_t tap = 0; tap < tap_count; ++tap) {
      sum = vfmaq_f32(sum, load(taps[tap] + c, t.channels - c), vld1q_f32(weights + tap * pitch + c));
    }
    finish(t, sum, y, 0, c);
  }
}

template <int P, int S>
void run_inside(const Step& t, const float* weights, const float* x, std::int64_t row_size, float* y) {
  constexpr int kColumns = (P - 1) * S + 3;
  const std::int64_t pitch = rounded(t.channels);
  for (std::int64_t c = 0; c < t.channels; c += kLanes) {
    float32x4_t sum[P];
    for (int p = 0; p < P; ++p) sum[p] = bias_at(t, c);
    CTK_UNROLL
    for (int ky = 0; ky < 3; ++ky) {
      const float* row = x + ky * row_size + c;
      const float* w = weights + 3 * ky * pitch + c;
      const float32x4_t w0 = vld1q_f32(w), w1 = vld1q_f32(w + pitch), w2 = vld1q_f32(w + 2 * pitch);
      float32x4_t in[kColumns];
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) in[i] = load(row + i * t.channels, t.channels - c);
      CTK_UNROLL
      for (int p = 0; p < P; ++p) {
        sum[p] = vfmaq_f32(sum[p], in[p * S], w0);
        sum[p] = vfmaq_f32(sum[p], in[p * S + 1], w1);
        sum[p] = vfmaq_f32(sum[p], in[p * S + 2], w2);
      }
    }
    for (int p = 0; p < P; ++p) finish(t, sum[p], y, p, c);
  }
}

}  // namespace

const DepthwiseFloatRow depthwise_fp32_4_arm_neondot = {
    Isa::arm_neondot, "depthwise_fp32_4_arm_neondot", packed_bytes, pack, scratch_bytes, run};

}  // namespace ctk::kernels

#endif
