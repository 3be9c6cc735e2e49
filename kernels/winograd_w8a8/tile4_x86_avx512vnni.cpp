// winograd_w8a8 with tiles of 4x4 outputs on AVX-512 VNNI: transforms on 32 channels at a time, products of pairs of
// int16 by vpdpwssd.
//
// Scratch: transformed inputs V [places][tiles][channels] int16, then sums of a few tiles [tiles][places][32 columns].
// Tiles are multiplied 14 or 7 at a time; V has room for those past the last, whose sums nobody reads.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/epilogue_x86_avx512.h"
#include "kernels/winograd_w8a8/weights.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

using Vector = __m512i;
constexpr std::size_t kLanes = 32;
constexpr std::size_t kRows = 14, kHalf = 7, kPanels = 2, kWide = kPanels * kColumns;

inline std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// Elements from one tile's channels to the next. Multiples of 512 bytes would fall on few cache sets.
inline std::size_t v_pitch(std::size_t channels) {
  const std::size_t pitch = round_up(channels, kLanes);
  return pitch % 256 == 0 ? pitch + kLanes : pitch;
}

inline std::size_t v_place(std::size_t channels, std::size_t tiles) {
  return round_up(tiles, kHalf) * v_pitch(channels) + kLanes;
}

inline Vector load(const void* at) {
  return _mm512_loadu_si512(at);
}
inline void store(void* at, Vector a) {
  _mm512_storeu_si512(at, a);
}
inline Vector sum16(Vector a, Vector b) {
  return _mm512_add_epi16(a, b);
}
inline Vector difference16(Vector a, Vector b) {
  return _mm512_sub_epi16(a, b);
}
template <int kBy>
inline Vector shifted16(Vector a) {
  return _mm512_slli_epi16(a, kBy);
}
inline Vector sum32(Vector a, Vector b) {
  return _mm512_add_epi32(a, b);
}
inline Vector difference32(Vector a, Vector b) {
  return _mm512_sub_epi32(a, b);
}
template <int kBy>
inline Vector shifted32(Vector a) {
  return _mm512_slli_epi32(a, kBy);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/winograd_w8a8/tile4_x86.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kSumsPitch = kPlaces * kWide + 16;  // an odd number of cache lines: tiles do not share sets

std::size_t scratch_bytes(std::size_t channels, std::size_t tiles) {
  return kPlaces * v_place(channels, tiles) * sizeof(std::int16_t) + kRows * kSumsPitch * sizeof(std::int32_t);
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  std::int16_t* out = static_cast<std::int16_t*>(staged);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm512_storeu_si512(out + i, _mm512_cvtepu8_epi16(codes));
  }
  for (; i < count; ++i) out[i] = x[i];
}

// sums[i] += x . w, x: the pair at base + Scale * step in every lane. In assembly: 28 sums, two weights and x fill the
// registers, and the addresses of 14 tiles have to be made of few.
template <std::size_t Scale>
inline void add_pair(__m512i (&sums)[kPanels], const char* base, std::size_t step, const __m512i (&w)[kPanels]) {
#if defined(CTK_USE_SIMDE)
  std::int32_t pair;
  std::memcpy(&pair, base + Scale * step, sizeof(pair));
  for (std::size_t p = 0; p < kPanels; ++p) {
    sums[p] = _mm512_add_epi32(sums[p], _mm512_madd_epi16(_mm512_set1_epi32(pair), w[p]));
  }
#else
  __m512i x;
  __asm__(
      "vpbroadcastd (%[base],%[step],%c[scale]), %[x]\n\t"
      "vpdpwssd %[w0], %[x], %[sum0]\n\t"
      "vpdpwssd %[w1], %[x], %[sum1]"
      : [sum0] "+v"(sums[0]), [sum1] "+v"(sums[1]), [x] "=&v"(x)
      : [base] "r"(base), [step] "r"(step), [scale] "i"(Scale), [w0] "v"(w[0]), [w1] "v"(w[1]),
        "m"(*reinterpret_cast<const char(*)[]>(base)));
#endif
}

// The step of one pair for seven tiles. steps: bytes to the next tile, to the third and to the fifth behind it.
[[gnu::always_inline]] inline void add_seven(__m512i (*sums)[kPanels], const char* base, const std::size_t (&steps)[3],
                                             const __m512i (&w)[kPanels]) {
  add_pair<1>(sums[0], base, 0, w);
  add_pair<1>(sums[1], base, steps[0], w);
  add_pair<2>(sums[2], base, steps[0], w);
  add_pair<1>(sums[3], base, steps[1], w);
  add_pair<4>(sums[4], base, steps[0], w);
  add_pair<1>(sums[5], base, steps[2], w);
  add_pair<2>(sums[6], base, steps[1], w);
}

// M tiles (14 or 7) of one place times 32 columns. pitch: bytes from one tile to the next.
template <std::size_t M>
[[gnu::noinline]] void products(const std::int16_t* v, std::size_t pitch, const std::int16_t* w, std::size_t panel,
                                std::size_t pairs, std::int32_t* sums) {
  __m512i acc[M][kPanels];
#pragma GCC unroll 14  // all of them: CTK_UNROLL stops at 8
  for (std::size_t i = 0; i < M; ++i) acc[i][0] = acc[i][1] = _mm512_setzero_si512();
  const char* a = reinterpret_cast<const char*>(v);
  const std::size_t steps[] = {pitch, 3 * pitch, 5 * pitch};
  for (std::size_t p = 0; p < pairs; ++p, w += 2 * kColumns, a += sizeof(std::int32_t)) {
    const __m512i both[kPanels] = {_mm512_loadu_si512(w), _mm512_loadu_si512(w + panel)};
    add_seven(acc, a, steps, both);
    if constexpr (M == kRows) add_seven(acc + kHalf, a + kHalf * pitch, steps, both);
  }
#pragma GCC unroll 14
  for (std::size_t i = 0; i < M; ++i) {
    _mm512_storeu_si512(sums + i * kSumsPitch, acc[i][0]);
    _mm512_storeu_si512(sums + i * kSumsPitch + kColumns, acc[i][1]);
  }
}

// What the pixels of a panel of 16 columns share.
struct Panel {
  const std::int16_t* weights;
  std::size_t column;
  __m512i bias;
  __m512 multiplier;
  __mmask16 exists;
  bool is_plain;  // as is_plain512() has it
};

Panel panel_at(const WinogradBlock& b, std::size_t column, std::size_t n_end) {
  const std::size_t left = n_end - column;
  Panel panel;
  panel.weights = static_cast<const std::int16_t*>(b.packed) + column * kPlaces * pairs_of(b.channels) * 2;
  panel.column = column;
  panel.exists = static_cast<__mmask16>(left < kColumns ? (1u << left) - 1 : 0xffff);
  panel.bias = _mm512_maskz_loadu_epi32(panel.exists, b.epilogue.bias + column);
  panel.multiplier = _mm512_maskz_loadu_ps(panel.exists, b.epilogue.multiplier + column);
  panel.is_plain = is_plain512(b.epilogue, panel.multiplier);
  return panel;
}

// Sums m [places][32] of the tile in row ty, column tx to its pixels of a panel.
[[gnu::noinline]] void finish_tile(const WinogradBlock& b, const Finish512& finish, const Panel& panel,
                                   const std::int32_t* m, std::size_t ty, std::size_t tx) {
  const __m512i inverse = _mm512_set1_epi32(kInverseOf9);
  __m512i rows[kTile][kSide];  // A^T m
  CTK_UNROLL
  for (std::size_t x = 0; x < kSide; ++x) {
    __m512i in[kSide], out[kTile];
    CTK_UNROLL
    for (std::size_t y = 0; y < kSide; ++y) in[y] = _mm512_loadu_si512(m + (y * kSide + x) * kWide);
    transform_out(in, out);
    CTK_UNROLL
    for (std::size_t y = 0; y < kTile; ++y) rows[y][x] = out[y];
  }
  CTK_UNROLL
  for (std::size_t y = 0; y < kTile; ++y) {
    if (kTile * ty + y >= b.height) return;
    __m512i out[kTile];
    transform_out(rows[y], out);
    CTK_UNROLL
    for (std::size_t x = 0; x < kTile; ++x) {
      out[x] = _mm512_add_epi32(_mm512_srai_epi32(_mm512_mullo_epi32(out[x], inverse), 6), panel.bias);
    }
    const std::size_t first = (kTile * ty + y) * b.c_width + kTile * tx;
    if (kTile * (tx + 1) <= b.width) {
      store_rows512<kTile>(finish, b.epilogue, out, panel.multiplier, panel.is_plain, panel.exists, first, panel.column,
                           b.c, b.c_stride);
      continue;
    }
    for (std::size_t x = 0; kTile * tx + x < b.width; ++x) {
      store_row512(finish, b.epilogue, out[x], panel.multiplier, panel.exists, first + x, panel.column, b.c,
                   b.c_stride);
    }
  }
}

void run(const WinogradBlock& b, std::size_t n_begin, std::size_t n_end) {
  const std::size_t tiles = b.tile_rows * b.tile_columns, pairs = pairs_of(b.channels);
  const std::size_t place = v_place(b.channels, tiles), pitch = v_pitch(b.channels);
  const std::size_t panel_step = kPlaces * pairs * 2 * kColumns;
  std::int16_t* v = static_cast<std::int16_t*>(b.scratch);
  std::int32_t* sums = reinterpret_cast<std::int32_t*>(v + kPlaces * place);
  transform_inputs(b, v);
  const Finish512 finish = finish512_of(b.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kWide) {
    // A panel that does not exist is multiplied as its neighbour, and left at that.
    const bool is_pair = n_end - column > kColumns;
    const Panel panels[] = {panel_at(b, column, n_end), panel_at(b, is_pair ? column + kColumns : column, n_end)};
    for (std::size_t tile = 0; tile < tiles; tile += kRows) {
      const bool is_half = tiles - tile <= kHalf;
      for (std::size_t i = 0; i < kPlaces; ++i) {
        (is_half ? products<kHalf> : products<kRows>)(v + i * place + tile * pitch, pitch * sizeof(std::int16_t),
                                                      panels[0].weights + i * pairs * 2 * kColumns,
                                                      is_pair ? panel_step : 0, pairs, sums + i * kWide);
      }
      for (std::size_t t = tile; t < tiles && t < tile + kRows; ++t) {
        for (std::size_t p = 0; p < (is_pair ? kPanels : 1); ++p) {
          finish_tile(b, finish, panels[p], sums + (t - tile) * kSumsPitch + p * kColumns, t / b.tile_columns,
                      t % b.tile_columns);
        }
      }
    }
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_4x4_x86_avx512vnni;
constinit const WinogradRow winograd_w8a8_4x4_x86_avx512vnni{
    .name = "winograd_w8a8_4x4_x86_avx512vnni",
    .tile = kTile,
    .m_step = kRows,
    .n_step = kWide,
    .packed_bytes = packed_bytes,
    .fits = tile4_fits,
    .pack = pack,
    .stage = stage,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels

#endif
