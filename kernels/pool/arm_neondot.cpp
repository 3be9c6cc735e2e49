// pool for ARM's vectors: channels in blocks held in registers while all taps of the window pass. The channels left
// over at the end go one by one.
#include "kernels/pool/pool.h"

#if defined(__aarch64__)

#include "kernels/epilogue_arm_neon.h"
#include "kernels/pool/taps.h"

namespace ctk::kernels {
namespace {

void max_u8(const ConvShape& s, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const std::uint8_t* first, std::uint8_t* out, std::int64_t, std::int64_t) {
                std::int64_t c = 0;
                for (; c + 16 <= s.in_channels; c += 16) {
                  uint8x16_t best = vdupq_n_u8(0);
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { best = vmaxq_u8(best, vld1q_u8(tap)); });
                  vst1q_u8(out + c, best);
                }
                for (; c + 8 <= s.in_channels; c += 8) {
                  uint8x8_t best = vdup_n_u8(0);
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { best = vmax_u8(best, vld1_u8(tap)); });
                  vst1_u8(out + c, best);
                }
                for (; c < s.in_channels; ++c) {
                  std::uint8_t best = 0;
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { best = *tap > best ? *tap : best; });
                  out[c] = best;
                }
              });
}

void max_f32(const ConvShape& s, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  const float least = -__builtin_inff();
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const float* first, float* out, std::int64_t, std::int64_t) {
                std::int64_t c = 0;
                for (; c + 4 <= s.in_channels; c += 4) {
                  float32x4_t best = vdupq_n_f32(least);
                  // Compared and selected: the best so far stays where the tap is NaN, or the other zero.
                  for_taps(w, p, first + c, [&](const float* tap) {
                    const float32x4_t t = vld1q_f32(tap);
                    best = vbslq_f32(vcgtq_f32(t, best), t, best);
                  });
                  vst1q_f32(out + c, best);
                }
                for (; c < s.in_channels; ++c) {
                  float best = least;
                  for_taps(w, p, first + c, [&](const float* tap) { best = *tap > best ? *tap : best; });
                  out[c] = best;
                }
              });
}

// Sums of four channels of codes -> codes. `taps` inside the image, divided by n.
struct AverageRule {
  float32x4_t ratio, n, low, high;
  int32x4_t zero_point, in_zero_sum;  // in_zero * taps inside
};

inline int32x4_t average_codes(const AverageRule& r, uint32x4_t sum) {
  const float32x4_t s = vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(sum), r.in_zero_sum));
  return vaddq_s32(round_clamped(vdivq_f32(vmulq_f32(s, r.ratio), r.n), r.low, r.high), r.zero_point);
}

void average_u8(const ConvShape& s, bool count_include_pad, const AverageU8& rule, const std::uint8_t* x,
                std::uint8_t* y, std::int64_t row_begin, std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  AverageRule r;
  r.ratio = vdupq_n_f32(rule.ratio);
  r.low = vdupq_n_f32(static_cast<float>(rule.low - rule.zero_point));
  r.high = vdupq_n_f32(static_cast<float>(rule.high - rule.zero_point));
  r.zero_point = vdupq_n_s32(rule.zero_point);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const std::uint8_t* first, std::uint8_t* out, std::int64_t oy, std::int64_t ox) {
                const std::int64_t taps = (w.ky_end - w.ky_begin) * (w.kx_end - w.kx_begin);
                r.n = vdupq_n_f32(static_cast<float>(pool_divisor(s, count_include_pad, oy, ox)));
                r.in_zero_sum = vdupq_n_s32(static_cast<int>(taps) * rule.in_zero);
                std::int64_t c = 0;
                for (; c + 8 <= s.in_channels; c += 8) {
                  uint32x4_t low = vdupq_n_u32(0), high = low;
                  uint16x8_t narrow = vdupq_n_u16(0);
                  int until_full = 257;  // 257 * 255 = 65535 still fits into 16 bits
                  auto widen = [&] {
                    low = vaddw_u16(low, vget_low_u16(narrow));
                    high = vaddw_u16(high, vget_high_u16(narrow));
                    narrow = vdupq_n_u16(0);
                    until_full = 257;
                  };
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) {
                    narrow = vaddw_u8(narrow, vld1_u8(tap));
                    if (--until_full == 0) widen();
                  });
                  widen();
                  const int16x8_t q = vcombine_s16(vmovn_s32(average_codes(r, low)), vmovn_s32(average_codes(r, high)));
                  vst1_u8(out + c, vqmovun_s16(q));
                }
                for (; c < s.in_channels; ++c) {
                  std::uint32_t sum = 0;
                  for_taps(w, p, first + c, [&](const std::uint8_t* tap) { sum += *tap; });
                  out[c] = static_cast<std::uint8_t>(vgetq_lane_s32(average_codes(r, vdupq_n_u32(sum)), 0));
                }
              });
}

void average_f32(const ConvShape& s, bool count_include_pad, const float* x, float* y, std::int64_t row_begin,
                 std::int64_t row_end) {
  const Pitch p = pitch_of(s);
  for_windows(s, x, y, row_begin, row_end,
              [&](const Inside& w, const float* first, float* out, std::int64_t oy, std::int64_t ox) {
                const float n = static_cast<float>(pool_divisor(s, count_include_pad, oy, ox));
                std::int64_t c = 0;
                for (; c + 16 <= s.in_channels; c += 16) {
                  float32x4_t sum[4] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
                  for_taps(w, p, first + c, [&](const float* tap) {
                    for (int v = 0; v < 4; ++v) sum[v] = vaddq_f32(sum[v], vld1q_f32(tap + 4 * v));
                  });
                  for (int v = 0; v < 4; ++v) vst1q_f32(out + c + 4 * v, vdivq_f32(sum[v], vdupq_n_f32(n)));
                }
                for (; c + 4 <= s.in_channels; c += 4) {
                  float32x4_t sum = vdupq_n_f32(0.0f);
                  for_taps(w, p, first + c, [&](const float* tap) { sum = vaddq_f32(sum, vld1q_f32(tap)); });
                  vst1q_f32(out + c, vdivq_f32(sum, vdupq_n_f32(n)));
                }
                for (; c < s.in_channels; ++c) {
                  float sum = 0.0f;
                  for_taps(w, p, first + c, [&](const float* tap) { sum += *tap; });
                  out[c] = sum / n;
                }
              });
}

}  // namespace

const PoolRow pool_arm_neondot = {Isa::arm_neondot, "pool_arm_neondot", max_u8, max_f32, average_u8, average_f32};

}  // namespace ctk::kernels

#endif
