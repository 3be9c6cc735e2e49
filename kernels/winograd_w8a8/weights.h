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

// U = G w G^T of 3x3 weights `w`, for each pair of channel and column.
template <std::size_t Side>
inline void winograd_pack(const int (&g)[Side][3], const std::int8_t* codes, std::size_t n, std::size_t channels,
                          void* packed) {
  const std::size_t pairs = pairs_of(channels), place = pairs * kColumns * 2;
  std::int16_t* panel = static_cast<std::int16_t*>(packed);
  for (std::size_t begin = 0; begin < n; begin += kColumns, panel += Side * Side * place) {
    for (std::size_t k = 0; k < 2 * pairs; ++k) {
      std::int16_t* out = panel + k / 2 * kColumns * 2 + k % 2;
      for (std::size_t column = begin; column < begin + kColumns; ++column, out += 2) {
        std::int8_t w[9] = {};
        if (column < n && k < channels) std::memcpy(w, codes + (column * channels + k) * 9, sizeof(w));
        for (std::size_t y = 0; y < Side; ++y) {
          int row[3];  // of G w
          for (std::size_t x = 0; x < 3; ++x) row[x] = g[y][0] * w[x] + g[y][1] * w[3 + x] + g[y][2] * w[6 + x];
          for (std::size_t x = 0; x < Side; ++x) {
            out[(y * Side + x) * place] =
                static_cast<std::int16_t>(row[0] * g[x][0] + row[1] * g[x][1] + row[2] * g[x][2]);
          }
        }
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
