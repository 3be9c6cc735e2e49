// norm for ARM's vectors: eight elements a step, in four vectors of doubles; the parts of the sums are their lanes.
#include "kernels/norm/norm.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cmath>

namespace ctk::kernels {
namespace {

struct Doubles {
  float64x2_t part[4];
};

inline Doubles doubles_of(const float* x) {
  const float32x4_t low = vld1q_f32(x), high = vld1q_f32(x + 4);
  return {{vcvt_f64_f32(vget_low_f32(low)), vcvt_high_f64_f32(low), vcvt_f64_f32(vget_low_f32(high)),
           vcvt_high_f64_f32(high)}};
}

// Of x or (x - mean)^2.
enum class Of { itself, square };
template <Of of>
inline double sum_of(const float* x, std::size_t count, double mean) {
  const float64x2_t none = vdupq_n_f64(0.0), middle = vdupq_n_f64(mean);
  Doubles sums{{none, none, none, none}};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    Doubles v = doubles_of(x + i);
    for (int p = 0; p < 4; ++p) {
      if constexpr (of == Of::square) {
        v.part[p] = vsubq_f64(v.part[p], middle);
        v.part[p] = vmulq_f64(v.part[p], v.part[p]);
      }
      sums.part[p] = vaddq_f64(sums.part[p], v.part[p]);
    }
  }
  double lanes[8];
  for (int p = 0; p < 4; ++p) vst1q_f64(lanes + 2 * p, sums.part[p]);
  for (int lane = 0; i < count; ++i, ++lane) {
    const double v = of == Of::square ? static_cast<double>(x[i]) - mean : static_cast<double>(x[i]);
    lanes[lane] += of == Of::square ? v * v : v;
  }
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void rms(const Norm& n, const float* x, float* y) {
  const double mean = sum_of<Of::square>(x, n.count, 0.0) / static_cast<double>(n.count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + n.epsilon));
  std::size_t i = 0;
  for (; i + 4 <= n.count; i += 4) {
    vst1q_f32(y + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), inverse), vld1q_f32(n.scale + i)));
  }
  for (; i < n.count; ++i) y[i] = x[i] * inverse * n.scale[i];
}

void layer(const Norm& n, const float* x, float* y) {
  const auto size = static_cast<double>(n.count);
  const double mean = sum_of<Of::itself>(x, n.count, 0.0) / size;
  const double inverse = 1.0 / std::sqrt(sum_of<Of::square>(x, n.count, mean) / size + n.epsilon);
  const float64x2_t middle = vdupq_n_f64(mean);
  std::size_t i = 0;
  for (; i + 4 <= n.count; i += 4) {
    const float32x4_t v = vld1q_f32(x + i);
    const float64x2_t low = vmulq_n_f64(vsubq_f64(vcvt_f64_f32(vget_low_f32(v)), middle), inverse);
    const float64x2_t high = vmulq_n_f64(vsubq_f64(vcvt_high_f64_f32(v), middle), inverse);
    const float32x4_t scaled = vmulq_f32(vcvt_high_f32_f64(vcvt_f32_f64(low), high), vld1q_f32(n.scale + i));
    vst1q_f32(y + i, n.shift == nullptr ? scaled : vaddq_f32(scaled, vld1q_f32(n.shift + i)));
  }
  for (; i < n.count; ++i) {
    const float scaled = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse) * n.scale[i];
    y[i] = n.shift != nullptr ? scaled + n.shift[i] : scaled;
  }
}

}  // namespace

const NormRow norm_arm_neondot = {Isa::arm_neondot, "norm_arm_neondot", rms, layer};

}  // namespace ctk::kernels

#endif
