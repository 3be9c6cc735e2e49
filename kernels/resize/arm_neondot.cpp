// resize for ARM's vectors: eight channels a step, their sums in four vectors of doubles. The channels left over at the
// end go through a buffer.
#include "kernels/resize/resize.h"

#if defined(__aarch64__)

#include "kernels/epilogue_arm_neon.h"
#include "kernels/resize/walk.h"

namespace ctk::kernels {
namespace {

constexpr std::int64_t kLanes = 8;

struct Eight {
  float32x4_t low, high;
};

struct Doubles {
  float64x2_t part[4];

  inline void add(double weight, const Doubles& of) {
    CTK_UNROLL
    for (int p = 0; p < 4; ++p) part[p] = vaddq_f64(part[p], vmulq_n_f64(of.part[p], weight));
  }
};

inline Doubles zeros() {
  const float64x2_t zero = vdupq_n_f64(0.0);
  return {{zero, zero, zero, zero}};
}

inline Doubles doubles_of(const Eight& x) {
  return {{vcvt_f64_f32(vget_low_f32(x.low)), vcvt_high_f64_f32(x.low), vcvt_f64_f32(vget_low_f32(x.high)),
           vcvt_high_f64_f32(x.high)}};
}

inline Eight floats_of(const Doubles& d) {
  return {vcvt_high_f32_f64(vcvt_f32_f64(d.part[0]), d.part[1]), vcvt_high_f32_f64(vcvt_f32_f64(d.part[2]), d.part[3])};
}

// How eight elements are read and written.
struct Floats {
  inline Eight load(const float* from) const { return {vld1q_f32(from), vld1q_f32(from + 4)}; }
  inline void store(float* to, const Eight& values) const {
    vst1q_f32(to, values.low);
    vst1q_f32(to + 4, values.high);
  }
};

struct Codes {
  float in_scale;
  float32x4_t out_scale, low, high;
  uint8x8_t in_zero;
  int16x8_t zero_point;

  inline Eight load(const std::uint8_t* from) const {
    const int16x8_t codes = vreinterpretq_s16_u16(vsubl_u8(vld1_u8(from), in_zero));
    return {vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(codes))), in_scale),
            vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(codes))), in_scale)};
  }
  inline int16x4_t four(float32x4_t values) const {
    float32x4_t t = vdivq_f32(values, out_scale);
    // NaN becomes 0, which is the zero point.
    t = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(t), vceqq_f32(t, t)));
    return vmovn_s32(round_clamped(t, low, high));
  }
  inline void store(std::uint8_t* to, const Eight& values) const {
    vst1_u8(to, vqmovun_s16(vaddq_s16(vcombine_s16(four(values.low), four(values.high)), zero_point)));
  }
};

// The element `from` points to and the seven behind it; only `rest` of them where that is not 0.
template <class Values, class T>
inline Eight load(const Values& values, const T* from, std::size_t rest) {
  if (rest == 0) return values.load(from);
  T buffer[kLanes] = {};
  std::memcpy(buffer, from, rest * sizeof(T));
  return values.load(buffer);
}

template <class Values, class T>
inline Eight eight(const Values& values, const Taps& rows, const Taps& columns, const T* from, std::size_t rest) {
  Doubles sum = zeros();
  for (int i = 0; i < rows.count; ++i) {
    Doubles line = zeros();
    for (int j = 0; j < columns.count; ++j) {
      line.add(columns.weight[j], doubles_of(load(values, from + rows.step[i] + columns.step[j], rest)));
    }
    sum.add(rows.weight[i], line);
  }
  return floats_of(sum);
}

template <class Values, class T>
inline void blend(const Values& values, const Resize& r, const T* x, T* y, std::int64_t row_begin,
                  std::int64_t row_end) {
  for_pixels(r, x, y, row_begin, row_end, [&](const Taps& rows, const Taps& columns, const T* from, T* to) {
    std::int64_t c = 0;
    for (; c + kLanes <= r.channels; c += kLanes) values.store(to + c, eight(values, rows, columns, from + c, 0));
    if (c == r.channels) return;
    const auto rest = static_cast<std::size_t>(r.channels - c);
    T buffer[kLanes];
    values.store(buffer, eight(values, rows, columns, from + c, rest));
    std::memcpy(to + c, buffer, rest * sizeof(T));
  });
}

void blend_f32(const Resize& r, const float* x, float* y, std::int64_t row_begin, std::int64_t row_end) {
  blend(Floats{}, r, x, y, row_begin, row_end);
}

void blend_u8(const Resize& r, const ResizeCodes& codes, const std::uint8_t* x, std::uint8_t* y, std::int64_t row_begin,
              std::int64_t row_end) {
  const auto zero = static_cast<float>(codes.zero_point);
  const Codes values{codes.in_scale,           vdupq_n_f32(codes.out_scale),
                     vdupq_n_f32(-zero),       vdupq_n_f32(255.0f - zero),
                     vdup_n_u8(codes.in_zero), vdupq_n_s16(codes.zero_point)};
  blend(values, r, x, y, row_begin, row_end);
}

// A pixel of at least 16 bytes; the last step goes back over bytes that the one before it moved.
inline void move_pixel(const char* from, char* to, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 16) {
    const std::int64_t at = i + 16 <= bytes ? i : bytes - 16;
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + at), vld1q_u8(reinterpret_cast<const std::uint8_t*>(from + at)));
  }
}

void nearest(const Resize& r, std::size_t element_bytes, const void* x, void* y, std::int64_t row_begin,
             std::int64_t row_end) {
  move_rows(r, r.channels * static_cast<std::int64_t>(element_bytes), x, y, row_begin, row_end, move_pixel);
}

}  // namespace

const ResizeRow resize_arm_neondot = {Isa::arm_neondot, "resize_arm_neondot", nearest, blend_f32, blend_u8};

}  // namespace ctk::kernels

#endif
