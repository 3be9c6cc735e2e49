// depthwise_w8a8 on AVX2: 16 channels of several output pixels at a time. Two taps are interleaved to pairs of int16
// and meet their pair of weights in one vpmaddwd. 3x3 windows of stride 1 and 2 share what neighbouring outputs read
// alike; other windows load every tap anew.
//
// Interleaving works within 128-bit lanes: of two vectors the first holds channels 0-3 and 8-11, the second 4-7 and
// 12-15, which is the order that packing to 16 bits undoes.
// Packed weights: [channels / 16][pairs][the two vectors][8 channels][2 taps] int16, pairs as pair_of() says; missing
// channels and taps are 0.
#if defined(__x86_64__)

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/pair_step_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kChannels = 16, kPair = 2 * kChannels, kPixels = 4, kNone = ~std::size_t{0};

std::size_t pairs_of(std::size_t tap_count) {
  return (tap_count + 1) / 2;
}

// The taps of a pair. Of nine, the first two rows of a 3x3 window pair up vertically, so that neighbouring outputs meet
// the same pairs.
struct Pair {
  std::size_t first, second;
};
inline Pair pair_of(std::size_t tap_count, std::size_t index) {
  if (tap_count == 9 && index < 3) return {index, index + 3};
  const std::size_t first = 2 * index;
  return {first, first + 1 < tap_count ? first + 1 : kNone};
}

std::size_t packed_bytes(std::size_t channels, std::size_t tap_count) {
  return (channels + kChannels - 1) / kChannels * kChannels * pairs_of(tap_count) * 2 * sizeof(std::int16_t);
}

void pack(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed) {
  std::int16_t* out = static_cast<std::int16_t*>(packed);
  for (std::size_t block = 0; block < channels; block += kChannels) {
    for (std::size_t index = 0; index < pairs_of(tap_count); ++index) {
      const Pair pair = pair_of(tap_count, index);
      for (std::size_t i = 0; i < kChannels; ++i) {
        const std::size_t half = i / 8, c = block + half * 4 + i % 4 + (i % 8 < 4 ? 0 : 8);
        const std::size_t taps[] = {pair.first, pair.second};
        for (const std::size_t tap : taps) {
          *out++ = c < channels && tap != kNone ? std::int16_t{codes[c * tap_count + tap]} : std::int16_t{0};
        }
      }
    }
  }
}

inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// The two vectors of one output's sums.
struct Sums {
  __m256i low, high;
};

// What the pixels of one block of channels share; two vectors each, in the order of the packed weights.
struct Block {
  const std::int16_t* weights;
  std::size_t channel, channels;  // first; how many exist
  Sums bias;
  __m256 multiplier[2];
  bool is_plain;  // as is_plain16() has it
};

inline __m256i lane_order(const void* at, std::size_t half) {
  const __m128i* quads = static_cast<const __m128i*>(at);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(quads + half)),
                                 _mm_loadu_si128(quads + 2 + half), 1);
}

Block block_at(const DepthwiseLine& line, std::size_t channel) {
  const EpilogueInt& e = line.epilogue;
  Block b;
  b.weights = static_cast<const std::int16_t*>(line.packed) + channel * pairs_of(line.tap_count) * 2;
  b.channel = channel;
  b.channels = line.channels - channel < kChannels ? line.channels - channel : kChannels;
  const std::int32_t* bias = e.bias + channel;
  const float* multiplier = e.multiplier + channel;
  std::int32_t some_bias[kChannels] = {};
  float some_multiplier[kChannels] = {};
  if (b.channels < kChannels) {
    std::memcpy(some_bias, bias, b.channels * sizeof(bias[0]));
    std::memcpy(some_multiplier, multiplier, b.channels * sizeof(multiplier[0]));
    bias = some_bias;
    multiplier = some_multiplier;
  }
  b.bias = {lane_order(bias, 0), lane_order(bias, 1)};
  b.multiplier[0] = _mm256_castsi256_ps(lane_order(multiplier, 0));
  b.multiplier[1] = _mm256_castsi256_ps(lane_order(multiplier, 1));
  b.is_plain = is_plain16(e, b.multiplier[0], b.multiplier[1], b.channels);
  return b;
}

// How a plain block's sums become codes. |multiplier| < 1 keeps the products within int32; the upper clamp may then
// wait for the codes: rounding is monotone and saturation keeps order. IsFull: zero point 0 and codes 0-255, as after
// Relu; saturation is then all the clamping there is.
template <bool IsFull>
struct ToCodes {
  __m256 multiplier0, multiplier1;
  __m256i zero, low, high;

  __m256i words(const Sums& sums) const {
    const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums.low), multiplier0));
    const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums.high), multiplier1));
    const __m256i words = _mm256_packs_epi32(first, second);
    return IsFull ? words : _mm256_adds_epi16(words, zero);
  }
  // Pixels at y and y + stride. Each lane holds eight codes of the first and eight of the second.
  void store(const Sums& first, const Sums& second, std::uint8_t* y, std::size_t stride) const {
    __m256i codes = _mm256_packus_epi16(words(first), words(second));
    if (!IsFull) codes = _mm256_min_epu8(high, _mm256_max_epu8(low, codes));
    const __m128i lower = _mm256_castsi256_si128(codes), upper = _mm256_extracti128_si256(codes, 1);
    _mm_storel_pi(reinterpret_cast<__m64*>(y), _mm_castsi128_ps(lower));
    _mm_storel_pi(reinterpret_cast<__m64*>(y + 8), _mm_castsi128_ps(upper));
    _mm_storeh_pi(reinterpret_cast<__m64*>(y + stride), _mm_castsi128_ps(lower));
    _mm_storeh_pi(reinterpret_cast<__m64*>(y + stride + 8), _mm_castsi128_ps(upper));
  }
};

// Pixel x of any block.
inline void finish_any(const DepthwiseLine& line, const Finish16& finish, const Block& b, std::size_t x,
                       const Sums& sums) {
  const __m256i lower = _mm256_permute2x128_si256(sums.low, sums.high, 0x20);
  const __m256i upper = _mm256_permute2x128_si256(sums.low, sums.high, 0x31);
  const __m256 multiplier0 = _mm256_permute2f128_ps(b.multiplier[0], b.multiplier[1], 0x20);
  const __m256 multiplier1 = _mm256_permute2f128_ps(b.multiplier[0], b.multiplier[1], 0x31);
  store16(finish, line.epilogue, lower, upper, multiplier0, multiplier1, x, b.channel, b.channels, line.y,
          line.channels);
}

// sum += madd(x, weights at w). Assembly: written as intrinsics, GCC 12 reorders the sums and spills.
inline void add(__m256i& sum, __m256i x, const std::int16_t* w) {
  __m256i product;
  __asm__(
      "vpmaddwd %[w], %[x], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [x] "x"(x), [w] "m"(*reinterpret_cast<const std::int16_t(*)[kChannels]>(w)));
}

inline void add(Sums& sums, const Sums& pairs, const std::int16_t* w) {
  add(sums.low, pairs.low, w);
  add(sums.high, pairs.high, w + kChannels);
}

inline Sums interleaved(__m256i a, __m256i b) {
  return {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}

// P pixels of any window.
template <std::size_t P>
void tile(const DepthwiseLine& line, const Finish16& finish, const Block& b, std::size_t x) {
  Sums sums[P];
  CTK_UNROLL
  for (std::size_t i = 0; i < P; ++i) sums[i] = b.bias;
  const std::size_t at = x * line.step + b.channel * sizeof(std::int16_t);
  const std::int16_t* w = b.weights;
  for (std::size_t index = 0; index < pairs_of(line.tap_count); ++index, w += kPair) {
    const Pair pair = pair_of(line.tap_count, index);
    const char* first = line.taps[pair.first] + at;
    const char* second = line.taps[pair.second != kNone ? pair.second : pair.first] + at;
    CTK_UNROLL
    for (std::size_t i = 0; i < P; ++i) {
      add(sums[i], interleaved(load(first + i * line.step), load(second + i * line.step)), w);
    }
  }
  CTK_UNROLL
  for (std::size_t i = 0; i < P; ++i) finish_any(line, finish, b, x + i, sums[i]);
}

// The steps of a walk over the columns of a 3x3 window. Assembly: GCC 12 keeps an address for every weight and spills.
// Weights at w, pairs of vectors: 0-2 rows 0 and 1 of column k; 3 row 2, columns 0 and 1; 4 row 2, column 2 (and 0).
#define CTK_ADD(weights, pairs, from, to, product)          \
  "vpmaddwd " #weights "(%[w]), %[" #pairs "], %[" #product \
  "]\n\t"                                                   \
  "vpaddd %[" #product "], %[" #from "], %[" #to "]\n\t"
#define CTK_INTERLEAVE(a, b, low, high)      \
  "vpunpcklwd %[" #b "], %[" #a "], %[" #low \
  "]\n\t"                                    \
  "vpunpckhwd %[" #b "], %[" #a "], %[" #high "]\n\t"

struct Rows {
  const char *row0, *row1, *row2;
};

// One column: the third of output `oldest`, the second of `middle`, the first of `newest`. here: row 2, in and out (the
// next column).
inline void step_dense(Rows& rows, std::size_t pixel, const std::int16_t* w, const Sums& bias, __m256i& here,
                       Sums& oldest, Sums& middle, Sums& newest) {
  __m256i a, b, c;
  __asm__ volatile(
      "vmovdqu (%[row0]), %[a]\n\t"
      "vmovdqu (%[row1]), %[b]\n\t"
      "add %[pixel], %[row0]\n\t"
      "add %[pixel], %[row1]\n\t"
      "add %[pixel], %[row2]\n\t"                                                   //
      CTK_INTERLEAVE(a, b, c, a)                                                    //
      CTK_ADD(0, c, bias0, newest0, b) CTK_ADD(64, c, middle0, middle0, b)          //
      CTK_ADD(128, c, oldest0, oldest0, c)                                          //
      CTK_ADD(32, a, bias1, newest1, b) CTK_ADD(96, a, middle1, middle1, c)         //
      CTK_ADD(160, a, oldest1, oldest1, b)                                          //
      "vmovdqu (%[row2]), %[a]\n\t"                                                 //
      CTK_INTERLEAVE(here, a, b, c)                                                 //
      CTK_ADD(192, b, newest0, newest0, here) CTK_ADD(256, b, oldest0, oldest0, b)  //
      CTK_ADD(224, c, newest1, newest1, here) CTK_ADD(288, c, oldest1, oldest1, c)  //
      "vmovdqa %[a], %[here]"
      : [a] "=&x"(a), [b] "=&x"(b), [c] "=&x"(c), [here] "+x"(here), [newest0] "=&x"(newest.low),
        [newest1] "=&x"(newest.high), [middle0] "+x"(middle.low), [middle1] "+x"(middle.high),
        [oldest0] "+x"(oldest.low), [oldest1] "+x"(oldest.high), [row0] "+r"(rows.row0), [row1] "+r"(rows.row1),
        [row2] "+r"(rows.row2)
      : [bias0] "x"(bias.low), [bias1] "x"(bias.high), [w] "r"(w), [pixel] "r"(pixel)
      : "memory", "cc");
}

// Stride 2, two columns: the third of output `oldest`, the first and second of `newest`.
inline void step_strided(Rows& rows, std::size_t pixel, const std::int16_t* w, const Sums& bias, Sums& oldest,
                         Sums& newest) {
  __m256i a, b, c;
  __asm__ volatile(
      "vmovdqu (%[row0]), %[a]\n\t"
      "vmovdqu (%[row1]), %[b]\n\t"                                           //
      CTK_INTERLEAVE(a, b, c, a)                                              //
      CTK_ADD(0, c, bias0, newest0, b) CTK_ADD(128, c, oldest0, oldest0, c)   //
      CTK_ADD(32, a, bias1, newest1, b) CTK_ADD(160, a, oldest1, oldest1, c)  //
      "vmovdqu (%[row2]), %[a]\n\t"
      "vmovdqu (%[row2], %[pixel]), %[b]\n\t"                                    //
      CTK_INTERLEAVE(a, b, c, a)                                                 //
      CTK_ADD(192, c, newest0, newest0, b) CTK_ADD(256, c, oldest0, oldest0, c)  //
      CTK_ADD(224, a, newest1, newest1, b) CTK_ADD(288, a, oldest1, oldest1, c)  //
      "vmovdqu (%[row0], %[pixel]), %[a]\n\t"
      "vmovdqu (%[row1], %[pixel]), %[b]\n\t"
      "lea (%[row0], %[pixel], 2), %[row0]\n\t"
      "lea (%[row1], %[pixel], 2), %[row1]\n\t"
      "lea (%[row2], %[pixel], 2), %[row2]\n\t"  //
      CTK_INTERLEAVE(a, b, c, a)                 //
      CTK_ADD(64, c, newest0, newest0, c) CTK_ADD(96, a, newest1, newest1, a)
      : [a] "=&x"(a), [b] "=&x"(b), [c] "=&x"(c), [newest0] "=&x"(newest.low), [newest1] "=&x"(newest.high),
        [oldest0] "+x"(oldest.low), [oldest1] "+x"(oldest.high), [row0] "+r"(rows.row0), [row1] "+r"(rows.row1),
        [row2] "+r"(rows.row2)
      : [bias0] "x"(bias.low), [bias1] "x"(bias.high), [w] "r"(w), [pixel] "r"(pixel)
      : "memory", "cc");
}

#undef CTK_ADD
#undef CTK_INTERLEAVE

// One line of a 3x3 window, a plain block. Each column meets up to three outputs; two outputs are finished at a time.
// Of those begun behind the end of the line nothing is written.
template <std::size_t Stride, bool IsFull>
void line3x3(const DepthwiseLine& line, const Finish16& finish, const Block& b) {
  const std::size_t at = b.channel * sizeof(std::int16_t), pixel = line.step / Stride;
  Rows rows{line.taps[0] + at, line.taps[3] + at, line.taps[6] + at};
  const std::int16_t* w = b.weights;
  const std::size_t width = line.width, channels = line.channels;
  const ToCodes<IsFull> to_codes{b.multiplier[0], b.multiplier[1], finish.zero,
                                 _mm256_set1_epi8(static_cast<char>(line.epilogue.low)),
                                 _mm256_set1_epi8(static_cast<char>(line.epilogue.high))};
  std::uint8_t* y = static_cast<std::uint8_t*>(line.y) + b.channel;
  const Sums bias = b.bias;
  Sums first = bias, second = bias, third = bias;
  std::size_t x = 0;
  if constexpr (Stride == 1) {
    __m256i here = load(rows.row2);
    Sums fourth = bias;
    step_dense(rows, pixel, w, bias, here, third, fourth, first);
    step_dense(rows, pixel, w, bias, here, third, first, second);
    for (; x + 2 <= width; x += 2, y += 2 * channels) {
      step_dense(rows, pixel, w, bias, here, first, second, third);
      step_dense(rows, pixel, w, bias, here, second, third, fourth);
      to_codes.store(first, second, y, channels);
      first = third;
      second = fourth;
    }
    if (x < width) step_dense(rows, pixel, w, bias, here, first, second, third);
  } else {
    step_strided(rows, pixel, w, bias, third, first);
    for (; x + 2 <= width; x += 2, y += 2 * channels) {
      step_strided(rows, pixel, w, bias, first, second);
      step_strided(rows, pixel, w, bias, second, third);
      to_codes.store(first, second, y, channels);
      first = third;
    }
    if (x < width) step_strided(rows, pixel, w, bias, first, second);
  }
  if (x < width) finish_any(line, finish, b, x, first);
}

void any_block(const DepthwiseLine& line, const Finish16& finish, const Block& b) {
  std::size_t x = 0;
  for (; x + kPixels <= line.width; x += kPixels) tile<kPixels>(line, finish, b, x);
  if (line.width - x == 3) tile<3>(line, finish, b, x);
  if (line.width - x == 2) tile<2>(line, finish, b, x);
  if (line.width - x == 1) tile<1>(line, finish, b, x);
}

// Nine taps in three rows of neighbours.
bool is_3x3(const DepthwiseLine& line) {
  if (line.tap_count != 9) return false;
  const std::size_t pixel = line.channels * sizeof(std::int16_t);
  for (std::size_t t = 0; t < 9; ++t) {
    if (line.taps[t] != line.taps[t / 3 * 3] + t % 3 * pixel) return false;
  }
  return line.step == pixel || line.step == 2 * pixel;
}

void run_line(const DepthwiseLine& line) {
  const Finish16 finish = finish16_of(line.epilogue);
  const bool by_columns = is_3x3(line), is_dense = line.step == line.channels * sizeof(std::int16_t);
  const EpilogueInt& e = line.epilogue;
  const bool is_full = e.zero_point == 0 && e.low == 0 && e.high == 255;
  for (std::size_t channel = 0; channel < line.channels; channel += kChannels) {
    const Block block = block_at(line, channel);
    if (!by_columns || !block.is_plain) {
      any_block(line, finish, block);
    } else if (is_dense) {
      is_full ? line3x3<1, true>(line, finish, block) : line3x3<1, false>(line, finish, block);
    } else {
      is_full ? line3x3<2, true>(line, finish, block) : line3x3<2, false>(line, finish, block);
    }
  }
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_2x16_x86_avx2;
constinit const DepthwiseIntRow depthwise_w8a8_2x16_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "depthwise_w8a8_2x16_x86_avx2",
    .element_bytes = sizeof(std::int16_t),
    .stage = widen,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run_line = run_line,
};

}  // namespace ctk::kernels

#endif
