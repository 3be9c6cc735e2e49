// softmax for ARM's vectors: eight elements a step; a last, shorter step goes through a buffer.
#include "kernels/softmax/softmax.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstring>

namespace ctk::kernels {
namespace {

// core/exp_negative.h, four at a time: the same products and sums, each rounded.
inline float32x4_t exp_negative(float32x4_t of) {
  const float32x4_t shift = vdupq_n_f32(12582912.0f), most = vdupq_n_f32(87.0f);
  const float32x4_t magnitude = vabsq_f32(of);
  const uint32x4_t far = vcgtq_f32(magnitude, most);
  const float32x4_t a = vnegq_f32(vbslq_f32(far, most, magnitude));
  const float32x4_t shifted = vaddq_f32(vmulq_n_f32(a, 1.44269504088896341f), shift);
  const float32x4_t n = vsubq_f32(shifted, shift);
  const float32x4_t r = vsubq_f32(vsubq_f32(a, vmulq_n_f32(n, 0.693359375f)), vmulq_n_f32(n, -2.12194440e-4f));
  float32x4_t p = vdupq_n_f32(1.9875691500e-4f);
  p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(1.3981999507e-3f));
  p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(8.3334519073e-3f));
  p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(4.1665795894e-2f));
  p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(1.6666665459e-1f));
  p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(5.0000001201e-1f));
  p = vaddq_f32(vaddq_f32(vmulq_f32(p, vmulq_f32(r, r)), r), vdupq_n_f32(1.0f));
  const uint32x4_t power = vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(shifted), vdupq_n_u32(127)), 23);
  const float32x4_t e = vmulq_f32(p, vreinterpretq_f32_u32(power));
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(e), far));
}

// The larger one; a NaN leaves `largest` as it is.
inline float32x4_t larger(float32x4_t x, float32x4_t largest) {
  return vbslq_f32(vcgtq_f32(x, largest), x, largest);
}

struct Sums {
  float64x2_t part[4];

  inline void add(float32x4_t low, float32x4_t high) {
    part[0] = vaddq_f64(part[0], vcvt_f64_f32(vget_low_f32(low)));
    part[1] = vaddq_f64(part[1], vcvt_high_f64_f32(low));
    part[2] = vaddq_f64(part[2], vcvt_f64_f32(vget_low_f32(high)));
    part[3] = vaddq_f64(part[3], vcvt_high_f64_f32(high));
  }
};

void run(const float* x, float* y, std::size_t count) {
  const std::size_t whole = count / 8 * 8, rest = count - whole;
  float last[8];  // the shorter step
  for (float& value : last) value = -__builtin_inff();
  std::memcpy(last, x + whole, rest * sizeof(float));
  float32x4_t low = vld1q_f32(last), high = vld1q_f32(last + 4);
  const float32x4_t none = vdupq_n_f32(-__builtin_inff());
  float32x4_t largest = larger(high, larger(low, none));
  for (std::size_t i = 0; i < whole; i += 4) largest = larger(vld1q_f32(x + i), largest);
  float lanes[4];
  vst1q_f32(lanes, largest);
  float most = lanes[0];
  for (int i = 1; i < 4; ++i) most = lanes[i] > most ? lanes[i] : most;
  const float32x4_t m = vdupq_n_f32(most);
  const float64x2_t zero = vdupq_n_f64(0.0);
  Sums sums{{zero, zero, zero, zero}};
  for (std::size_t i = 0; i < whole; i += 8) {
    const float32x4_t first = exp_negative(vsubq_f32(vld1q_f32(x + i), m));
    const float32x4_t second = exp_negative(vsubq_f32(vld1q_f32(x + i + 4), m));
    vst1q_f32(y + i, first);
    vst1q_f32(y + i + 4, second);
    sums.add(first, second);
  }
  vst1q_f32(last, exp_negative(vsubq_f32(low, m)));
  vst1q_f32(last + 4, exp_negative(vsubq_f32(high, m)));
  for (std::size_t i = rest; i < 8; ++i) last[i] = 0.0f;
  sums.add(vld1q_f32(last), vld1q_f32(last + 4));
  double parts[8];
  for (int p = 0; p < 4; ++p) vst1q_f64(parts + 2 * p, sums.part[p]);
  double sum = 0.0;
  for (const double part : parts) sum += part;
  const auto factor = static_cast<float>(1.0 / sum);
  for (std::size_t i = 0; i < whole; i += 4) vst1q_f32(y + i, vmulq_n_f32(vld1q_f32(y + i), factor));
  for (std::size_t i = 0; i < rest; ++i) y[whole + i] = last[i] * factor;
}

}  // namespace

const SoftmaxRow softmax_arm_neondot = {Isa::arm_neondot, "softmax_arm_neondot", run};

}  // namespace ctk::kernels

#endif
