// depthwise_w8a8 on AVX2: 16 channels of four output pixels at a time; two taps are interleaved to int16 pairs and meet
// their pair of weights in one vpmaddwd.
//
// Packed weights: [channels / 16][taps / 2][16 channels][2 taps] int16; missing channels and the missing last tap are
// 0.
#if defined(__x86_64__)

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kChannels = 16, kPixels = 4;

std::size_t pairs_of(std::size_t tap_count) {
  return (tap_count + 1) / 2;
}

std::size_t packed_bytes(std::size_t channels, std::size_t tap_count) {
  return (channels + kChannels - 1) / kChannels * kChannels * pairs_of(tap_count) * 2 * sizeof(std::int16_t);
}

void pack(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed) {
  std::int16_t* out = static_cast<std::int16_t*>(packed);
  for (std::size_t block = 0; block < channels; block += kChannels) {
    for (std::size_t pair = 0; pair < pairs_of(tap_count); ++pair) {
      for (std::size_t c = block; c < block + kChannels; ++c) {
        for (std::size_t t = 2 * pair; t < 2 * pair + 2; ++t) {
          *out++ = c < channels && t < tap_count ? std::int16_t{codes[c * tap_count + t]} : std::int16_t{0};
        }
      }
    }
  }
}

inline __m128i codes_at(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// Channels channel..channel+15 of P pixels; `columns` of the channels exist. bias and multiplier: 16 elements.
template <std::size_t P>
inline void tile(const DepthwiseLine& line, const Finish16& finish, std::size_t x, std::size_t channel,
                 std::size_t channels, const std::int32_t* bias, const float* multiplier) {
  __m256i acc[P][2];
  for (std::size_t i = 0; i < P; ++i) {
    acc[i][0] = load(bias);
    acc[i][1] = load(bias + 8);
  }
  const std::size_t at = x * line.step + channel;
  const std::int16_t* w = static_cast<const std::int16_t*>(line.packed) + channel * pairs_of(line.tap_count) * 2;
  for (std::size_t t = 0; t < line.tap_count; t += 2, w += 2 * kChannels) {
    const std::uint8_t* a = line.taps[t] + at;
    const std::uint8_t* b = line.taps[t + 1 < line.tap_count ? t + 1 : t] + at;
    const __m256i w0 = load(w), w1 = load(w + kChannels);
    for (std::size_t i = 0; i < P; ++i) {
      const __m128i xa = codes_at(a + i * line.step), xb = codes_at(b + i * line.step);
      const __m256i x0 = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(xa, xb));
      const __m256i x1 = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(xa, xb));
      acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(x0, w0));
      acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(x1, w1));
    }
  }
  const __m256 multiplier0 = _mm256_loadu_ps(multiplier), multiplier1 = _mm256_loadu_ps(multiplier + 8);
  for (std::size_t i = 0; i < P; ++i) {
    store16(finish, line.epilogue, acc[i][0], acc[i][1], multiplier0, multiplier1, x + i, channel, channels, line.y,
            line.channels);
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

void run_line(const DepthwiseLine& line) {
  const Finish16 finish = finish16_of(line.epilogue);
  std::size_t x = 0;
  for (; x + kPixels <= line.width; x += kPixels) pixels<kPixels>(line, finish, x);
  switch (line.width - x) {
    case 3:
      pixels<3>(line, finish, x);
      break;
    case 2:
      pixels<2>(line, finish, x);
      break;
    case 1:
      pixels<1>(line, finish, x);
      break;
    default:
      break;
  }
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_4x16_x86_avx2;
constinit const DepthwiseIntRow depthwise_w8a8_4x16_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "depthwise_w8a8_4x16_x86_avx2",
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run_line = run_line,
};

}  // namespace ctk::kernels

#endif
