// eltwise for ARM's vectors: 16 codes or 4 floats a step. The last, shorter step of codes goes through a buffer on the
// stack.
#include "kernels/eltwise/eltwise.h"

#if defined(__aarch64__)

#include "kernels/epilogue_arm_neon.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kCodes = 16;

struct Limits {
  float32x4_t low, high;  // of the value before the zero point is added
  int16x8_t zero_point;
};

inline Limits limits_of(std::uint8_t zero_point, std::uint8_t low, std::uint8_t high) {
  return {vdupq_n_f32(static_cast<float>(low - zero_point)), vdupq_n_f32(static_cast<float>(high - zero_point)),
          vdupq_n_s16(zero_point)};
}

// Eight codes less their zero point.
inline int16x8_t eight(const std::uint8_t* from, uint8x8_t zero) {
  return vreinterpretq_s16_u16(vsubl_u8(vld1_u8(from), zero));
}

inline void store_codes(std::uint8_t* to, float32x4_t t0, float32x4_t t1, const Limits& l) {
  const int16x4_t q0 = vmovn_s32(round_clamped(t0, l.low, l.high)), q1 = vmovn_s32(round_clamped(t1, l.low, l.high));
  vst1_u8(to, vqmovun_s16(vaddq_s16(vcombine_s16(q0, q1), l.zero_point)));
}

struct Add {
  Limits limits;
  uint8x8_t a_zero, b_zero;
  float a_ratio, b_ratio;

  inline float32x4_t sum(int16x4_t a, int16x4_t b) const {
    return vaddq_f32(vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(a)), a_ratio),
                     vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(b)), b_ratio));
  }
  inline void operator()(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y) const {
    CTK_UNROLL
    for (std::size_t i = 0; i < kCodes; i += 8) {
      const int16x8_t left = eight(a + i, a_zero), right = eight(b + i, b_zero);
      store_codes(y + i, sum(vget_low_s16(left), vget_low_s16(right)), sum(vget_high_s16(left), vget_high_s16(right)),
                  limits);
    }
  }
};

struct Multiply {
  Limits limits;
  uint8x8_t a_zero, b_zero;
  float ratio;

  inline float32x4_t product(int16x4_t a, int16x4_t b) const {
    return vmulq_n_f32(vcvtq_f32_s32(vmull_s16(a, b)), ratio);
  }
  inline void operator()(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y) const {
    CTK_UNROLL
    for (std::size_t i = 0; i < kCodes; i += 8) {
      const int16x8_t left = eight(a + i, a_zero), right = eight(b + i, b_zero);
      store_codes(y + i, product(vget_low_s16(left), vget_low_s16(right)),
                  product(vget_high_s16(left), vget_high_s16(right)), limits);
    }
  }
};

template <class Rule>
inline void for_codes(const Rule& rule, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y,
                      std::size_t count) {
  std::size_t i = 0;
  for (; i + kCodes <= count; i += kCodes) rule(a + i, b + i, y + i);
  if (i == count) return;
  std::uint8_t left[kCodes] = {}, right[kCodes] = {}, out[kCodes];
  std::memcpy(left, a + i, count - i);
  std::memcpy(right, b + i, count - i);
  rule(left, right, out);
  std::memcpy(y + i, out, count - i);
}

void add_u8(const AddU8& r, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  const Add rule{limits_of(r.zero_point, r.low, r.high), vdup_n_u8(r.a_zero), vdup_n_u8(r.b_zero), r.a_ratio,
                 r.b_ratio};
  for_codes(rule, a, b, y, count);
}

void mul_u8(const MulU8& r, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y, std::size_t count) {
  const Multiply rule{limits_of(r.zero_point, r.low, r.high), vdup_n_u8(r.a_zero), vdup_n_u8(r.b_zero), r.ratio};
  for_codes(rule, a, b, y, count);
}

// y = clamp(rule(a, b), low, high), four at a time; the last, fewer ones go through buffers.
template <class Rule>
inline void for_floats(const Rule& rule, const float* a, const float* b, float low, float high, float* y,
                       std::size_t count) {
  const float32x4_t least = vdupq_n_f32(low), most = vdupq_n_f32(high);
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) vst1q_f32(y + i, clamp_real(rule(vld1q_f32(a + i), vld1q_f32(b + i)), least, most));
  if (i == count) return;
  float left[4] = {}, right[4] = {}, out[4];
  std::memcpy(left, a + i, (count - i) * sizeof(float));
  std::memcpy(right, b + i, (count - i) * sizeof(float));
  vst1q_f32(out, clamp_real(rule(vld1q_f32(left), vld1q_f32(right)), least, most));
  std::memcpy(y + i, out, (count - i) * sizeof(float));
}

void add_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  for_floats([](float32x4_t s, float32x4_t t) { return vaddq_f32(s, t); }, a, b, low, high, y, count);
}

void mul_f32(const float* a, const float* b, float low, float high, float* y, std::size_t count) {
  for_floats([](float32x4_t s, float32x4_t t) { return vmulq_f32(s, t); }, a, b, low, high, y, count);
}

void clamp_f32(const float* x, float low, float high, float* y, std::size_t count) {
  for_floats([](float32x4_t s, float32x4_t) { return s; }, x, x, low, high, y, count);
}

}  // namespace

const EltwiseRow eltwise_arm_neondot = {Isa::arm_neondot, "eltwise_arm_neondot", add_u8, mul_u8, add_f32, mul_f32,
                                        clamp_f32};

}  // namespace ctk::kernels

#endif
