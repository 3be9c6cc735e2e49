// depthwise_w8a8 on AVX-512 VNNI: up to 64 channels of an output pixel at a time. Bytes of up to four taps are
// interleaved to quads, one a channel, that meet their quad of weights in one vpdpbusd. In 3x3 windows of stride 1 and
// 2 a quad is a column of the window, so that neighbouring outputs share what was interleaved.
//
// Interleaving works within 128-bit lanes: of four vectors, number v holds channels 16 * lane + 4 * v .. + 3, which is
// the order that packing to 8 bits undoes.
// Packed weights: [blocks of 64, then 32, then 16 channels][quads][4 vectors][lanes][4 channels][4 taps] int8, quads as
// quad_of() says; missing channels and taps are 0.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"

#include "kernels/depthwise_w8a8/vectors_x86_avx512.h"
#include "kernels/epilogue_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kQuad = 4, kVectors = 4, kNarrow = 16, kNone = ~std::size_t{0};

std::size_t quads_of(std::size_t tap_count) {
  return (tap_count + kQuad - 1) / kQuad;
}

// Tap `slot` of a quad. Nine taps make three quads in any case: the columns of a 3x3 window.
std::size_t tap_of(std::size_t tap_count, std::size_t quad, std::size_t slot) {
  const std::size_t tap = tap_count == 9 ? 3 * slot + quad : kQuad * quad + slot;
  return tap < tap_count ? tap : kNone;
}

// Channels of the block that begins where so many are left; the last one may hold fewer.
std::size_t block_channels(std::size_t left) {
  return left >= Zmm::kBytes ? Zmm::kBytes : left >= Ymm::kBytes ? Ymm::kBytes : kNarrow;
}

std::size_t packed_bytes(std::size_t channels, std::size_t tap_count) {
  return (channels + kNarrow - 1) / kNarrow * kNarrow * quads_of(tap_count) * kQuad;
}

void pack(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed) {
  std::int8_t* out = static_cast<std::int8_t*>(packed);
  for (std::size_t block = 0, wide = 0; block < channels; block += wide) {
    wide = block_channels(channels - block);
    for (std::size_t quad = 0; quad < quads_of(tap_count); ++quad) {
      for (std::size_t i = 0; i < wide; ++i) {
        const std::size_t lanes = wide / 16, vector = i / (4 * lanes), lane = i / 4 % lanes;
        const std::size_t c = block + 16 * lane + 4 * vector + i % 4;
        for (std::size_t slot = 0; slot < kQuad; ++slot) {
          const std::size_t tap = tap_of(tap_count, quad, slot);
          *out++ = c < channels && tap != kNone ? codes[c * tap_count + tap] : std::int8_t{0};
        }
      }
    }
  }
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

// Sums of one output pixel, or quads of taps.
template <class V>
struct Four {
  typename V::Int v[kVectors];
};

// What the pixels of one block of channels share.
template <class V>
struct Block {
  const char* weights;
  std::size_t channel, channels;  // first; how many exist
  Four<V> bias;
  typename V::Float multiplier[kVectors];
  typename V::Int zero, low, high;
  bool is_plain;    // as is_plain16() has it, of all
  Finish16 finish;  // unless it is
};

template <class V>
Block<V> block_at(const EpilogueInt& e, const void* packed, std::size_t tap_count, std::size_t channel,
                  std::size_t channels) {
  Block<V> b;
  b.weights = static_cast<const char*>(packed) + channel * quads_of(tap_count) * kQuad;
  b.channel = channel;
  b.channels = channels - channel < V::kBytes ? channels - channel : V::kBytes;
  const std::int32_t* bias = e.bias + channel;
  const float* multiplier = e.multiplier + channel;
  std::int32_t some_bias[kNarrow];
  float some_multiplier[kNarrow];
  if (b.channels < V::kBytes) {  // narrow then
    std::memset(some_bias, 0, sizeof(some_bias));
    std::memset(some_multiplier, 0, sizeof(some_multiplier));
    std::memcpy(some_bias, bias, b.channels * sizeof(bias[0]));
    std::memcpy(some_multiplier, multiplier, b.channels * sizeof(multiplier[0]));
    bias = some_bias;
    multiplier = some_multiplier;
  }
  b.is_plain = b.channels == V::kBytes;
  CTK_UNROLL
  for (std::size_t i = 0; i < kVectors; ++i) {
    b.bias.v[i] = V::lanes(bias, i);
    b.multiplier[i] = V::float_lanes(multiplier, i);
  }
  for (std::size_t c = 0; c < b.channels && b.is_plain; c += kNarrow) {
    b.is_plain = is_plain16(e, _mm256_loadu_ps(multiplier + c), _mm256_loadu_ps(multiplier + c + 8), kNarrow);
  }
  if (!b.is_plain) b.finish = finish16_of(e);
  b.zero = V::every_word(e.zero_point);
  b.low = V::every_byte(e.low);
  b.high = V::every_byte(e.high);
  return b;
}

// Bytes a, b, c, d of each channel side by side.
template <class V>
inline Four<V> quads(typename V::Int a, typename V::Int b, typename V::Int c, typename V::Int d) {
  const typename V::Int ab0 = V::low8(a, b), ab1 = V::high8(a, b), cd0 = V::low8(c, d), cd1 = V::high8(c, d);
  return {{V::low16(ab0, cd0), V::high16(ab0, cd0), V::low16(ab1, cd1), V::high16(ab1, cd1)}};
}

// sum of `to` = sum of `from` + quads . weights
template <class V>
inline void add(Four<V>& to, const Four<V>& from, const Four<V>& x, const char* w) {
  CTK_UNROLL
  for (std::size_t i = 0; i < kVectors; ++i) to.v[i] = V::dot(from.v[i], x.v[i], V::load(w + i * V::kBytes));
}

// Pixel x of any block.
template <class V>
[[gnu::noinline]] void finish_any(const EpilogueInt& e, const Block<V>& b, std::size_t channels, std::size_t x,
                                  const Four<V>& sums, void* y) {
  std::int32_t acc[kVectors][V::kBytes / 4];
  float by[kVectors][V::kBytes / 4];
  for (std::size_t i = 0; i < kVectors; ++i) {
    V::store(acc[i], sums.v[i]);
    std::memcpy(by[i], &b.multiplier[i], sizeof(by[i]));
  }
  for (std::size_t c = 0, at = 0; c < b.channels; c += kNarrow, at += 4) {
    const __m256i acc0 = _mm256_loadu2_m128i(lane_at(acc[1] + at, 0), lane_at(acc[0] + at, 0));
    const __m256i acc1 = _mm256_loadu2_m128i(lane_at(acc[3] + at, 0), lane_at(acc[2] + at, 0));
    const __m256 by0 = _mm256_loadu2_m128(by[1] + at, by[0] + at), by1 = _mm256_loadu2_m128(by[3] + at, by[2] + at);
    const std::size_t left = b.channels - c;
    store16(b.finish, e, acc0, acc1, by0, by1, x, b.channel + c, left < kNarrow ? left : kNarrow, y, channels);
  }
}

// A pixel of a plain block. |multiplier| < 1 keeps the products within int32; the clamp may then wait for the codes:
// rounding is monotone and saturation keeps order. IsFull: zero point 0 and codes 0-255, as after Relu; saturation is
// then all the clamping there is.
template <class V, bool IsFull>
inline void finish_plain(const Block<V>& b, const Four<V>& sums, std::uint8_t* y) {
  typename V::Int first = V::words(V::rounded(sums.v[0], b.multiplier[0]), V::rounded(sums.v[1], b.multiplier[1]));
  typename V::Int second = V::words(V::rounded(sums.v[2], b.multiplier[2]), V::rounded(sums.v[3], b.multiplier[3]));
  if (!IsFull) {
    first = V::add_words(first, b.zero);
    second = V::add_words(second, b.zero);
  }
  const typename V::Int codes = V::bytes(first, second);
  V::store(y, IsFull ? codes : V::clamp(codes, b.low, b.high));
}

// P pixels of any window.
template <class V, std::size_t P>
void tile(const DepthwiseLine& line, const Block<V>& b, std::size_t x) {
  Four<V> sums[P];
  CTK_UNROLL
  for (std::size_t i = 0; i < P; ++i) sums[i] = b.bias;
  const std::size_t at = x * line.step + b.channel;
  const char* w = b.weights;
  for (std::size_t quad = 0; quad < quads_of(line.tap_count); ++quad, w += kVectors * V::kBytes) {
    const char* from[kQuad];
    CTK_UNROLL
    for (std::size_t slot = 0; slot < kQuad; ++slot) {
      const std::size_t tap = tap_of(line.tap_count, quad, slot);
      from[slot] = line.taps[tap != kNone ? tap : 0] + at;
    }
    CTK_UNROLL
    for (std::size_t i = 0; i < P; ++i) {
      const std::size_t pixel = i * line.step;
      add(sums[i], sums[i],
          quads<V>(V::load(from[0] + pixel), V::load(from[1] + pixel), V::load(from[2] + pixel),
                   V::load(from[3] + pixel)),
          w);
    }
  }
  CTK_UNROLL
  for (std::size_t i = 0; i < P; ++i) {
    if (b.is_plain) {
      finish_plain<V, false>(b, sums[i], static_cast<std::uint8_t*>(line.y) + (x + i) * line.channels + b.channel);
    } else {
      finish_any(line.epilogue, b, line.channels, x + i, sums[i], line.y);
    }
  }
}

template <class V>
void run_block(const DepthwiseLine& line, std::size_t channel) {
  const Block<V> b = block_at<V>(line.epilogue, line.packed, line.tap_count, channel, line.channels);
  std::size_t x = 0;
  for (; x + 4 <= line.width; x += 4) tile<V, 4>(line, b, x);
  for (; x < line.width; ++x) tile<V, 1>(line, b, x);
}

enum class Finish { any, plain, full };

// A walk over the columns of a 3x3 window, a block of channels.
template <class V, Finish F>
struct Walk {
  const DepthwiseWindow& window;
  const Block<V>& b;
  const std::uint8_t* rows[3];
  std::size_t pixels[3];
  std::size_t x = 0;

  Walk(const DepthwiseWindow& w, const Block<V>& block) : window(w), b(block) { w.pads_left ? step_out() : step_in(); }
  void step_in() {
    for (std::size_t i = 0; i < 3; ++i) {
      rows[i] = window.rows[i] + b.channel;
      pixels[i] = window.pixels[i];
    }
  }
  void step_out() {
    for (std::size_t i = 0; i < 3; ++i) {
      rows[i] = window.padding + b.channel;
      pixels[i] = 0;
    }
  }
  [[gnu::always_inline]] Four<V> next() {
    const Four<V> column = quads<V>(V::load(rows[0]), V::load(rows[1]), V::load(rows[2]), V::zero());
    for (std::size_t i = 0; i < 3; ++i) rows[i] += pixels[i];
    return column;
  }
  // Column 0, 1 or 2 of the window.
  [[gnu::always_inline]] void meet(Four<V>& to, const Four<V>& from, const Four<V>& column, std::size_t index) const {
    add(to, from, column, b.weights + index * kVectors * V::kBytes);
  }
  [[gnu::always_inline]] void finish(const Four<V>& sums) {
    if constexpr (F == Finish::any) {
      finish_any(window.epilogue, b, window.channels, x, sums, window.y);
    } else {
      std::uint8_t* y = static_cast<std::uint8_t*>(window.y) + x * window.channels + b.channel;
      finish_plain<V, F == Finish::full>(b, sums, y);
    }
    ++x;
  }

  // Outputs of which the first, and the first two columns were met are under way at a time.
  void dense() {
    Four<V> first, second, third, column = next();
    meet(first, b.bias, column, 0);
    if (window.pads_left) step_in();
    column = next();
    meet(first, first, column, 1);
    meet(second, b.bias, column, 0);
    while (x + window.pads_right < window.width) {
      column = next();
      meet(first, first, column, 2);
      meet(second, second, column, 1);
      meet(third, b.bias, column, 0);
      finish(first);
      first = second;
      second = third;
    }
    if (x == window.width) return;
    step_out();
    meet(first, first, next(), 2);
    finish(first);
  }
  // Neighbours share one column, the third and the first.
  void strided() {
    Four<V> first, second, column = next();
    meet(first, b.bias, column, 0);
    if (window.pads_left) step_in();
    meet(first, first, next(), 1);
    while (x + 1 < window.width) {
      column = next();
      meet(first, first, column, 2);
      meet(second, b.bias, column, 0);
      finish(first);
      meet(first, second, next(), 1);
    }
    if (window.pads_right) step_out();
    meet(first, first, next(), 2);
    finish(first);
  }
};

template <class V>
void run_block(const DepthwiseWindow& window, std::size_t channel) {
  const EpilogueInt& e = window.epilogue;
  const Block<V> b = block_at<V>(e, window.packed, 9, channel, window.channels);
  const auto walk = [&](auto&& columns) { window.stride == 1 ? columns.dense() : columns.strided(); };
  if (!b.is_plain) {
    walk(Walk<V, Finish::any>(window, b));
  } else if (e.zero_point == 0 && e.low == 0 && e.high == 255) {
    walk(Walk<V, Finish::full>(window, b));
  } else {
    walk(Walk<V, Finish::plain>(window, b));
  }
}

template <class Work>
void run_blocks(const Work& work) {
  for (std::size_t channel = 0; channel < work.channels;) {
    const std::size_t wide = block_channels(work.channels - channel);
    if (wide == Zmm::kBytes) {
      run_block<Zmm>(work, channel);
    } else if (wide == Ymm::kBytes) {
      run_block<Ymm>(work, channel);
    } else {
      run_block<Xmm>(work, channel);
    }
    channel += wide;
  }
}

// Nine taps in three rows of neighbours: staged, but a window like others.
bool is_3x3(const DepthwiseLine& line) {
  if (line.tap_count != 9 || line.width == 0) return false;
  for (std::size_t t = 0; t < 9; ++t) {
    if (line.taps[t] != line.taps[t / 3 * 3] + t % 3 * line.channels) return false;
  }
  return line.step == line.channels || line.step == 2 * line.channels;
}

void run_window(const DepthwiseWindow& window) {
  run_blocks(window);
}

void run_line(const DepthwiseLine& line) {
  if (!is_3x3(line)) return run_blocks(line);
  DepthwiseWindow window;
  window.width = line.width;
  window.channels = line.channels;
  window.stride = line.step / line.channels;
  for (std::size_t i = 0; i < 3; ++i) {
    window.rows[i] = reinterpret_cast<const std::uint8_t*>(line.taps[3 * i]);
    window.pixels[i] = line.channels;
  }
  window.packed = line.packed;
  window.epilogue = line.epilogue;
  window.y = line.y;
  run_blocks(window);
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_1x64_x86_avx512vnni;
constinit const DepthwiseIntRow depthwise_w8a8_1x64_x86_avx512vnni{
    .isa = Isa::x86_avx512vnni,
    .name = "depthwise_w8a8_1x64_x86_avx512vnni",
    .element_bytes = sizeof(std::uint8_t),
    .stage = stage,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run_line = run_line,
    .run_window = run_window,
};

}  // namespace ctk::kernels

#endif
