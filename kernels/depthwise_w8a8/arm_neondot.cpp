// depthwise_w8a8 on ARM's dot products: 16 channels of four output pixels at a time; four taps are interleaved to quads
// and meet their quad of weights in one sdot. Activations lose 128 on the way in; 128 times the sum of a channel's
// weights, packed with them, is added to the bias instead.
//
// Packed weights: [channels / 16] blocks, each int32 [16] (128 * sum of the channel's weights, modulo 2^32), then int8
// [taps / 4][16 channels][4 taps]; missing channels and missing last taps are 0.
#if defined(__aarch64__)

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include "kernels/epilogue_arm_neon.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kChannels = 16, kPixels = 4, kQuad = 4, kQuadBytes = kChannels * kQuad;

std::size_t block_bytes(std::size_t tap_count) {
  return kChannels * sizeof(std::int32_t) + (tap_count + kQuad - 1) / kQuad * kQuadBytes;
}

std::size_t packed_bytes(std::size_t channels, std::size_t tap_count) {
  return (channels + kChannels - 1) / kChannels * block_bytes(tap_count);
}

void pack(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed) {
  std::int8_t* out = static_cast<std::int8_t*>(packed);
  for (std::size_t block = 0; block < channels; block += kChannels) {
    std::uint32_t sums[kChannels] = {};
    std::int8_t* start = out;
    out += sizeof(sums);
    for (std::size_t quad = 0; quad < tap_count; quad += kQuad) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        for (std::size_t t = quad; t < quad + kQuad; ++t) {
          const std::int8_t code =
              block + c < channels && t < tap_count ? codes[(block + c) * tap_count + t] : std::int8_t{0};
          sums[c] += static_cast<std::uint32_t>(code * 128);
          *out++ = code;
        }
      }
    }
    std::memcpy(start, sums, sizeof(sums));
  }
}

// Four taps of 16 channels -> quads of channels 0-3, 4-7, 8-11, 12-15, each less 128.
inline void interleave(const std::uint8_t* const (&taps)[kQuad], std::size_t at, int8x16_t (&x)[4]) {
  const uint8x16_t a = vld1q_u8(taps[0] + at), b = vld1q_u8(taps[1] + at);
  const uint8x16_t c = vld1q_u8(taps[2] + at), d = vld1q_u8(taps[3] + at);
  const uint8x16_t turn = vdupq_n_u8(0x80);
  const uint16x8_t ab0 = vreinterpretq_u16_u8(veorq_u8(vzip1q_u8(a, b), turn));
  const uint16x8_t ab1 = vreinterpretq_u16_u8(veorq_u8(vzip2q_u8(a, b), turn));
  const uint16x8_t cd0 = vreinterpretq_u16_u8(veorq_u8(vzip1q_u8(c, d), turn));
  const uint16x8_t cd1 = vreinterpretq_u16_u8(veorq_u8(vzip2q_u8(c, d), turn));
  x[0] = vreinterpretq_s8_u16(vzip1q_u16(ab0, cd0));
  x[1] = vreinterpretq_s8_u16(vzip2q_u16(ab0, cd0));
  x[2] = vreinterpretq_s8_u16(vzip1q_u16(ab1, cd1));
  x[3] = vreinterpretq_s8_u16(vzip2q_u16(ab1, cd1));
}

// Channels channel..channel+15 of P pixels; `channels` of them exist. bias and multiplier: 16 elements.
template <std::size_t P>
inline void tile(const DepthwiseLine& line, const Finish16& finish, std::size_t x, std::size_t channel,
                 std::size_t channels, const std::int32_t* bias, const float* multiplier) {
  const std::int8_t* w =
      static_cast<const std::int8_t*>(line.packed) + channel / kChannels * block_bytes(line.tap_count);
  std::int32_t shift[kChannels];
  std::memcpy(shift, w, sizeof(shift));
  w += sizeof(shift);
  int32x4_t acc[P][4];
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) {
    acc[0][v] = vaddq_s32(vld1q_s32(bias + 4 * v), vld1q_s32(shift + 4 * v));
    CTK_UNROLL
    for (std::size_t i = 1; i < P; ++i) acc[i][v] = acc[0][v];
  }
  const std::size_t at = x * line.step + channel;
  for (std::size_t t = 0; t < line.tap_count; t += kQuad, w += kQuadBytes) {
    const std::uint8_t* taps[kQuad];
    for (std::size_t j = 0; j < kQuad; ++j)
      taps[j] = reinterpret_cast<const std::uint8_t*>(line.taps[t + j < line.tap_count ? t + j : t]);
    int8x16_t weights[4];
    CTK_UNROLL
    for (std::size_t v = 0; v < 4; ++v) weights[v] = vld1q_s8(w + 16 * v);
    CTK_UNROLL
    for (std::size_t i = 0; i < P; ++i) {
      int8x16_t quads[4];
      interleave(taps, at + i * line.step, quads);
      CTK_UNROLL
      for (std::size_t v = 0; v < 4; ++v) acc[i][v] = vdotq_s32(acc[i][v], quads[v], weights[v]);
    }
  }
  float32x4_t multipliers[4];
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) multipliers[v] = vld1q_f32(multiplier + 4 * v);
  CTK_UNROLL
  for (std::size_t i = 0; i < P; ++i) {
    store16(finish, line.epilogue, acc[i], multipliers, x + i, channel, channels, line.y, line.channels);
  }
}

// P pixels, all channels: memory is walked in order.
template <std::size_t P>
void pixels(const DepthwiseLine& line, const Finish16& finish, std::size_t x) {
  const EpilogueInt& e = line.epilogue;
  std::size_t channel = 0;
  for (; channel + kChannels <= line.channels; channel += kChannels) {
    tile<P>(line, finish, x, channel, kChannels, e.bias + channel, e.multiplier + channel);
  }
  const std::size_t left = line.channels - channel;
  if (left == 0) return;
  std::int32_t bias[kChannels] = {};
  float multiplier[kChannels] = {};
  std::memcpy(bias, e.bias + channel, left * sizeof(bias[0]));
  std::memcpy(multiplier, e.multiplier + channel, left * sizeof(multiplier[0]));
  tile<P>(line, finish, x, channel, left, bias, multiplier);
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

void run_line(const DepthwiseLine& line) {
  const Finish16 finish = finish16_of(line.epilogue);
  std::size_t x = 0;
  for (; x + kPixels <= line.width; x += kPixels) pixels<kPixels>(line, finish, x);
  if (line.width - x == 3) pixels<3>(line, finish, x);
  if (line.width - x == 2) pixels<2>(line, finish, x);
  if (line.width - x == 1) pixels<1>(line, finish, x);
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_4x16_arm_neondot;
constinit const DepthwiseIntRow depthwise_w8a8_4x16_arm_neondot{
    .isa = Isa::arm_neondot,
    .name = "depthwise_w8a8_4x16_arm_neondot",
    .element_bytes = 1,
    .stage = stage,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run_line = run_line,
};

}  // namespace ctk::kernels

#endif
