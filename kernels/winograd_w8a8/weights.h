// The transformed weights of integer Winograd rows that multiply two channels at a time: [n / 16][places][channels / 2]
// [16 columns][2 channels] int16, zero past n and channels. For ISA sources: everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ctk::kernels {
namespace {

constexpr std::size_t kColumns = 16, kTile4Side = 6;

inline std::size_t pairs_of(std::size_t channels) {
  return (channels + 1) / 2;
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

// 24G with G = [1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1], the last row 8 times
// smaller: else it would not fit 16 bits.
constexpr int kTile4Weights[kTile4Side][3] = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 3}};

// 64 times the largest and the least sum of any activations stay within int32.
inline bool tile4_fits(const std::int8_t* codes, std::size_t n, std::size_t channels) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) / 64 / 255 - 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::int64_t above = 0, below = 0;
    for (std::size_t k = 0; k < channels * 9; ++k) {
      const std::int64_t w = codes[column * channels * 9 + k];
      above += w > 0 ? w : 0;
      below -= w < 0 ? w : 0;
    }
    if (above > kMost || below > kMost) return false;
  }
  return true;
}

}  // namespace
}  // namespace ctk::kernels
