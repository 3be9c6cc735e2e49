// convert for ARM's vectors: 16 codes a step; transposes in blocks of 4x4 floats and 16x16 bytes.
#include "kernels/convert/convert.h"

#if defined(__aarch64__)

#include "kernels/convert/transpose.h"
#include "kernels/epilogue_arm_neon.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kCodes = 16;

struct Quantizer {
  float32x4_t scale, low, high;
  int16x8_t zero_point;

  inline int16x4_t four(const float* x) const {
    float32x4_t t = vdivq_f32(vld1q_f32(x), scale);
    // NaN becomes 0, which is the zero point.
    t = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(t), vceqq_f32(t, t)));
    return vmovn_s32(round_clamped(t, low, high));
  }
  inline void operator()(const float* x, std::uint8_t* y) const {
    CTK_UNROLL
    for (std::size_t i = 0; i < kCodes; i += 8) {
      vst1_u8(y + i, vqmovun_s16(vaddq_s16(vcombine_s16(four(x + i), four(x + i + 4)), zero_point)));
    }
  }
};

void quantize(const float* x, float scale, std::uint8_t zero_point, std::uint8_t* y, std::size_t count) {
  const Quantizer quantizer{vdupq_n_f32(scale), vdupq_n_f32(-static_cast<float>(zero_point)),
                            vdupq_n_f32(255.0f - static_cast<float>(zero_point)), vdupq_n_s16(zero_point)};
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
  const uint8x8_t zero = vdup_n_u8(zero_point);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const int16x8_t codes = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(x + i), zero));
    vst1q_f32(y + i, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(codes))), scale));
    vst1q_f32(y + i + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(codes))), scale));
  }
  for (; i < count; ++i) y[i] = static_cast<float>(static_cast<int>(x[i]) - static_cast<int>(zero_point)) * scale;
}

struct Floats {
  static constexpr std::size_t kSize = 4;
  static void turn(const float* x, std::size_t xs, float* y, std::size_t ys) {
    const float32x4_t a = vld1q_f32(x), b = vld1q_f32(x + xs), c = vld1q_f32(x + 2 * xs), d = vld1q_f32(x + 3 * xs);
    const float32x4_t ac0 = vzip1q_f32(a, c), ac1 = vzip2q_f32(a, c), bd0 = vzip1q_f32(b, d), bd1 = vzip2q_f32(b, d);
    vst1q_f32(y, vzip1q_f32(ac0, bd0));
    vst1q_f32(y + ys, vzip2q_f32(ac0, bd0));
    vst1q_f32(y + 2 * ys, vzip1q_f32(ac1, bd1));
    vst1q_f32(y + 3 * ys, vzip2q_f32(ac1, bd1));
  }
};

// Four rounds of interleaving row i with row i + 8 turn row and column bits around.
struct Bytes {
  static constexpr std::size_t kSize = 16;
  static void turn(const std::uint8_t* x, std::size_t xs, std::uint8_t* y, std::size_t ys) {
    uint8x16_t a[16], b[16];
    for (std::size_t i = 0; i < 16; ++i) a[i] = vld1q_u8(x + i * xs);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 8; ++i) {
        b[2 * i] = vzip1q_u8(a[i], a[i + 8]);
        b[2 * i + 1] = vzip2q_u8(a[i], a[i + 8]);
      }
      for (int i = 0; i < 8; ++i) {
        a[2 * i] = vzip1q_u8(b[i], b[i + 8]);
        a[2 * i + 1] = vzip2q_u8(b[i], b[i + 8]);
      }
    }
    for (std::size_t i = 0; i < 16; ++i) vst1q_u8(y + i * ys, a[i]);
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

const ConvertRow convert_arm_neondot = {Isa::arm_neondot,    "convert_arm_neondot", quantize,
                                        dequantize,          to_channels_last_f32,  to_channels_first_f32,
                                        to_channels_last_u8, to_channels_first_u8};

}  // namespace ctk::kernels

#endif
