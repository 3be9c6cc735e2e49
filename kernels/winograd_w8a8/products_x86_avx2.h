// What integer Winograd rows for AVX2 share: layouts and the products of the places. Internal linkage.
//
// Packed weights: [n / 16][places][channels / 2][16 columns][2 channels] int16, zero past n and channels.
// Scratch: transformed inputs V [places][tiles][channels] int16, then one panel's sums [tiles][places][16 columns].
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/gemm_w8a8/pair_step_x86_avx2.h"
#include "kernels/intrinsics_x86.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6, kColumns = 16, kLanes = 16;

inline std::size_t pairs_of(std::size_t channels) {
  return (channels + 1) / 2;
}

// Elements from one tile's channels to the next. Multiples of 512 bytes would fall on few cache sets.
inline std::size_t v_pitch(std::size_t channels) {
  const std::size_t pitch = (channels + kLanes - 1) / kLanes * kLanes;
  return pitch % 256 == 0 ? pitch + 32 : pitch;
}

inline std::size_t v_place(std::size_t channels, std::size_t tiles) {
  return tiles * v_pitch(channels) + 32;
}

// Elements from one tile's sums to the next: an odd number of cache lines, so that tiles do not share sets.
constexpr std::size_t sums_pitch_of(std::size_t places) {
  return places * kColumns + 16;
}

inline std::size_t winograd_scratch_bytes(std::size_t places, std::size_t channels, std::size_t tiles) {
  return places * v_place(channels, tiles) * sizeof(std::int16_t) +
         tiles * sums_pitch_of(places) * sizeof(std::int32_t);
}

inline std::size_t winograd_packed_bytes(std::size_t places, std::size_t n, std::size_t channels) {
  return (n + kColumns - 1) / kColumns * places * pairs_of(channels) * kColumns * 2 * sizeof(std::int16_t);
}

// The codes of one pair of channels for a panel, tap by tap, in the order of the packed weights; zero past the end.
struct PairTaps {
  std::int16_t at[9][2 * kColumns];
};

inline void read_pair(const std::int8_t* codes, std::size_t n, std::size_t channels, std::size_t column, std::size_t k,
                      PairTaps& taps) {
  if (column + kColumns > n || k + 2 > channels) std::memset(&taps, 0, sizeof(taps));
  for (std::size_t c = 0; c < kColumns && column + c < n; ++c) {
    const std::int8_t* from = codes + ((column + c) * channels + k) * 9;
    for (std::size_t j = 0; j < 2 && k + j < channels; ++j, from += 9) {
      for (std::size_t tap = 0; tap < 9; ++tap) taps.at[tap][2 * c + j] = from[tap];
    }
  }
}

// sum of g[i] * w[i * step] for the lanes of a pair; every sum and part of one fits 16 bits.
inline void weigh(const int (&g)[3], const std::int16_t (*w)[2 * kColumns], std::size_t step, std::int16_t* out) {
  for (std::size_t l = 0; l < 2 * kColumns; ++l) {
    out[l] = static_cast<std::int16_t>(g[0] * w[0][l] + g[1] * w[step][l] + g[2] * w[2 * step][l]);
  }
}

// U = G w G^T of 3x3 weights `w`, for each pair of channels and column.
template <std::size_t Side>
inline void winograd_pack(const int (&g)[Side][3], const std::int8_t* codes, std::size_t n, std::size_t channels,
                          void* packed) {
  const std::size_t pairs = pairs_of(channels), place = pairs * kColumns * 2;
  std::int16_t* panel = static_cast<std::int16_t*>(packed);
  PairTaps taps;
  for (std::size_t begin = 0; begin < n; begin += kColumns, panel += Side * Side * place) {
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      read_pair(codes, n, channels, begin, 2 * pair, taps);
      std::int16_t* out = panel + pair * kColumns * 2;
      for (std::size_t y = 0; y < Side; ++y) {
        std::int16_t row[3][2 * kColumns];  // of G w
        for (std::size_t x = 0; x < 3; ++x) weigh(g[y], taps.at + x, 3, row[x]);
        for (std::size_t x = 0; x < Side; ++x) weigh(g[x], row, 1, out + (y * Side + x) * place);
      }
    }
  }
}

inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
inline void store(void* at, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(at), value);
}

// M tiles of one place times 16 columns. H: halves of the panel, 1 when no more than eight of its columns exist.
template <std::size_t M, std::size_t H>
void products(const std::int16_t* v, std::size_t pitch, const std::int16_t* w, std::size_t pairs, std::int32_t* sums,
              std::size_t sums_pitch) {
  __m256i acc[M][2];
  const char* a[M];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    acc[i][0] = acc[i][1] = _mm256_setzero_si256();
    a[i] = reinterpret_cast<const char*>(v + i * pitch);
    __asm__("" : "+r"(a[i]));  // keep the sum: adding it up again for every load costs a slot each
  }
  for (std::size_t p = 0; p < pairs; ++p, w += 2 * kColumns) {
    if constexpr (H == 2) {
      const __m256i w0 = load(w), w1 = load(w + kColumns);
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) add_pair(acc[i][0], acc[i][1], a[i] + p * sizeof(std::int32_t), w0, w1);
    } else {
      const __m256i w0 = load(w);
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) add_pair(acc[i][0], a[i] + p * sizeof(std::int32_t), w0);
    }
  }
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    store(sums + i * sums_pitch, acc[i][0]);
    store(sums + i * sums_pitch + 8, acc[i][1]);
  }
}

template <std::size_t H>
void all_products(const std::int16_t* v, std::size_t tiles, std::size_t pitch, const std::int16_t* w, std::size_t pairs,
                  std::int32_t* sums, std::size_t sums_pitch) {
  std::size_t t = 0;
  for (; t + kRows <= tiles; t += kRows)
    products<kRows, H>(v + t * pitch, pitch, w, pairs, sums + t * sums_pitch, sums_pitch);
  v += t * pitch;
  sums += t * sums_pitch;
  if (tiles - t == 5) products<5, H>(v, pitch, w, pairs, sums, sums_pitch);
  if (tiles - t == 4) products<4, H>(v, pitch, w, pairs, sums, sums_pitch);
  if (tiles - t == 3) products<3, H>(v, pitch, w, pairs, sums, sums_pitch);
  if (tiles - t == 2) products<2, H>(v, pitch, w, pairs, sums, sums_pitch);
  if (tiles - t == 1) products<1, H>(v, pitch, w, pairs, sums, sums_pitch);
}

// What the pixels of a panel of 16 columns share.
struct WinogradPanel {
  const std::int16_t* weights;
  std::size_t column, columns;  // first; how many exist
  std::int32_t bias[kColumns];
  float multiplier[kColumns];
};

inline WinogradPanel winograd_panel(const WinogradBlock& b, std::size_t places, std::size_t column, std::size_t n_end) {
  WinogradPanel panel{};
  panel.weights = static_cast<const std::int16_t*>(b.packed) + column * places * pairs_of(b.channels) * 2;
  panel.column = column;
  panel.columns = n_end - column < kColumns ? n_end - column : kColumns;
  std::memcpy(panel.bias, b.epilogue.bias + column, panel.columns * sizeof(panel.bias[0]));
  std::memcpy(panel.multiplier, b.epilogue.multiplier + column, panel.columns * sizeof(panel.multiplier[0]));
  return panel;
}

// The sums of all places of a panel.
inline void panel_products(const WinogradBlock& b, std::size_t places, const WinogradPanel& panel,
                           const std::int16_t* v, std::int32_t* sums) {
  const std::size_t tiles = b.tile_rows * b.tile_columns, pairs = pairs_of(b.channels);
  const std::size_t place = v_place(b.channels, tiles), pitch = v_pitch(b.channels);
  for (std::size_t i = 0; i < places; ++i) {
    const std::int16_t* weights = panel.weights + i * pairs * 2 * kColumns;
    if (panel.columns > 8) {
      all_products<2>(v + i * place, tiles, pitch, weights, pairs, sums + i * kColumns, sums_pitch_of(places));
    } else {
      all_products<1>(v + i * place, tiles, pitch, weights, pairs, sums + i * kColumns, sums_pitch_of(places));
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
