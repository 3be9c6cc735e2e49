// Rounding of activations for ARM rows, and how they lie then. Everything has internal linkage.
//
// The rows of a block are taken in tiles of 4 / digits rows. A row's digit is a "line" of its own, a row's highest
// digit first; a tile has room for four lines, one for each 32-bit lane of a vector. Tile after tile:
//   scales       float32 [groups][4]        scale[m,g] * 256^d
//   corrections  int32   [groups][4]        -sum_k q_d, times the zero point of symmetric weights (zero_point_of())
//   codes        int8    [4 * steps][4][4]  of four k each; zero past k
// Lines a tile does not have stay unwritten: they are loaded and not used.
#pragma once

#include "kernels/epilogue_arm_neon.h"
#include "kernels/gemm_wg/panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kLines = 4;

// What codes of 8 bits are lowered by, for sdot takes both operands signed.
constexpr int lowered_by(int bits) {
  return bits == 8 ? 128 : 0;
}

// Of symmetric weights, for codes so lowered.
constexpr std::uint32_t zero_point_of(int bits) {
  return static_cast<std::uint32_t>((1 << (bits - 1)) - lowered_by(bits));
}

inline std::size_t tile_rows(std::size_t digits) {
  return kLines / digits;
}

struct Staged {
  float* scales;
  std::int32_t* corrections;
  std::int8_t* codes;
};

inline std::size_t tile_bytes(const PanelLayout& p) {
  return round_up_64(p.groups * kLines * (sizeof(float) + sizeof(std::int32_t)) + p.steps * kStep * kLines);
}

inline Staged staged_tile(const PanelLayout& p, const void* staged, std::size_t tile) {
  char* at = static_cast<char*>(const_cast<void*>(staged)) + tile * tile_bytes(p);
  const std::size_t part = p.groups * kLines * sizeof(float);
  return {reinterpret_cast<float*>(at), reinterpret_cast<std::int32_t*>(at + part),
          reinterpret_cast<std::int8_t*>(at + 2 * part)};
}

inline float32x4_t load_at_most_4(const float* from, std::size_t count) {
  if (count >= 4) return vld1q_f32(from);
  float buffer[4] = {};
  for (std::size_t i = 0; i < count; ++i) buffer[i] = from[i];
  return vld1q_f32(buffer);
}

// The largest magnitude's bits. Bits of magnitudes are in the order of the numbers, infinity and NaN above all.
inline std::uint32_t top_bits(const float* a, std::size_t count) {
  const uint32x4_t sign_off = vdupq_n_u32(0x7fffffff);
  uint32x4_t top = vdupq_n_u32(0);
  for (std::size_t i = 0; i < count; i += 4) {
    top = vmaxq_u32(top, vandq_u32(vreinterpretq_u32_f32(load_at_most_4(a + i, count - i)), sign_off));
  }
  return vmaxvq_u32(top);
}

struct RoundingStep {
  float scale, inverse;  // inverse 0: all codes are 0
};

inline RoundingStep rounding_step(std::uint32_t bits, float limit) {
  if (bits >= 0x7f800000u) return {__builtin_nanf(""), 0.0f};
  float top;
  std::memcpy(&top, &bits, sizeof(top));
  if (top < 0x1p-100f) return {0.0f, 0.0f};
  return {top / limit, limit / top};
}

// One group of one row. scales, corrections, codes: of the group and the row's first line.
template <std::size_t D>
void stage_group(const float* a, std::size_t count, RoundingStep step, std::uint32_t symmetric_factor, float* scales,
                 std::int32_t* corrections, std::int8_t* codes) {
  const int32x4_t half = vdupq_n_s32(128);
  int32x4_t sums[D];
  for (std::size_t d = 0; d < D; ++d) sums[d] = vdupq_n_s32(0);
  const std::size_t padded = (count + kStep - 1) / kStep * kStep;
  for (std::size_t i = 0; i < padded; i += kQuad, codes += kLines * kQuad) {
    int32x4_t q = vdupq_n_s32(0);
    if (step.inverse != 0.0f && i < count)
      q = vcvtnq_s32_f32(vmulq_n_f32(load_at_most_4(a + i, count - i), step.inverse));
    for (std::size_t d = D; d-- > 0;) {  // the lowest digit stands last
      const int16x4_t words = vmovn_s32(q);
      const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
      const std::int32_t quad = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
      std::memcpy(codes + d * kQuad, &quad, kQuad);
      sums[d] = vaddq_s32(sums[d], q);
      if (d > 0) q = vshrq_n_s32(vaddq_s32(q, half), 8);
    }
  }
  float weight = step.scale;
  std::uint32_t above = 0;
  for (std::size_t d = D; d-- > 0; weight *= 256.0f) scales[d] = weight;
  for (std::size_t d = 0; d < D; ++d) {  // a digit is what remains of q beside those above it
    const std::uint32_t sum = static_cast<std::uint32_t>(vaddvq_s32(sums[d]));
    corrections[d] = static_cast<std::int32_t>((above * 256u - sum) * symmetric_factor);
    above = sum;
  }
}

template <std::size_t D>
void stage_rows(const GemmWg& g, const float* a, std::size_t begin, std::size_t end, void* staged) {
  const PanelLayout layout = layout_of(g.shape);
  const std::size_t k = g.shape.k, group = g.shape.group();
  const float limit = D == 1 ? 127.0f : D == 2 ? 127.0f * 256.0f : 127.0f * 65536.0f;
  for (std::size_t m = begin; m < end; ++m) {
    const Staged to = staged_tile(layout, staged, m / tile_rows(D));
    const std::size_t line = m % tile_rows(D) * D;
    const float* row = a + m * g.a_stride;
    RoundingStep step{0.0f, 0.0f};
    if (g.per_token) step = rounding_step(top_bits(row, k), limit);
    for (std::size_t i = 0; i < layout.groups; ++i) {
      const float* from = row + i * group;
      const std::size_t count = smaller(group, k - i * group), at = i * kLines + line;
      if (!g.per_token) step = rounding_step(top_bits(from, count), limit);
      stage_group<D>(from, count, step, g.shape.is_affine ? 1 : zero_point_of(g.shape.bits), to.scales + at,
                     to.corrections + at, to.codes + (i * layout.group_steps * kQuads * kLines + line) * kQuad);
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
