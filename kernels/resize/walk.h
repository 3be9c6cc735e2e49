// What ISA sources of resize share: the taps that have a say, and pixels moved by plain copies. Internal linkage.
#pragma once

#include "kernels/resize/resize.h"

namespace ctk::kernels {
namespace {

constexpr int kMostTaps = 4;

// The taps of one output position whose weight is not 0, as steps in elements.
struct Taps {
  int count = 0;
  std::int64_t step[kMostTaps];
  double weight[kMostTaps];
};

inline Taps taps_of(const ResizeAxis& axis, std::int64_t to, std::int64_t pitch) {
  Taps taps;
  for (std::int64_t i = to * axis.taps; i < (to + 1) * axis.taps; ++i) {
    if (axis.weight[i] == 0.0) continue;
    taps.step[taps.count] = axis.at[i] * pitch;
    taps.weight[taps.count++] = axis.weight[i];
  }
  return taps;
}

// Calls pixel(y's taps, x's taps, first element of the image, first element of the output pixel) for every pixel.
template <class T, class Pixel>
inline void for_pixels(const Resize& r, const T* x, T* y, std::int64_t row_begin, std::int64_t row_end,
                       const Pixel& pixel) {
  y += row_begin * r.x.out * r.channels;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* image = x + row / r.y.out * r.y.in * r.x.in * r.channels;
    const Taps rows = taps_of(r.y, row % r.y.out, r.x.in * r.channels);
    for (std::int64_t ox = 0; ox < r.x.out; ++ox, y += r.channels) {
      pixel(rows, taps_of(r.x, ox, r.channels), image, y);
    }
  }
}

// Pixels of a size that the compiler knows.
template <std::int64_t bytes>
inline void move_row(const ResizeAxis& axis, const char* from, char* to) {
  for (std::int64_t ox = 0; ox < axis.out; ++ox, to += bytes) {
    __builtin_memcpy(to, from + axis.at[ox * axis.taps] * bytes, bytes);
  }
}

// One row of `nearest`. move(from, to, bytes) moves pixels of 16 bytes and more.
template <class Move>
inline void move_row(const ResizeAxis& axis, std::int64_t bytes, const char* from, char* to, const Move& move) {
  if (bytes == 1) return move_row<1>(axis, from, to);
  if (bytes == 3) return move_row<3>(axis, from, to);
  if (bytes == 4) return move_row<4>(axis, from, to);
  if (bytes == 8) return move_row<8>(axis, from, to);
  if (bytes == 12) return move_row<12>(axis, from, to);
  for (std::int64_t ox = 0; ox < axis.out; ++ox, to += bytes) {
    const char* pixel = from + axis.at[ox * axis.taps] * bytes;
    if (bytes >= 16) {
      move(pixel, to, bytes);
    } else {
      for (std::int64_t i = 0; i < bytes; ++i) to[i] = pixel[i];
    }
  }
}

// `nearest` on pixels of `bytes`; a row that reads what the one before it read is a copy of that.
template <class Move>
inline void move_rows(const Resize& r, std::int64_t bytes, const void* x, void* y, std::int64_t row_begin,
                      std::int64_t row_end, const Move& move) {
  const std::int64_t in_bytes = r.x.in * bytes, out_bytes = r.x.out * bytes;
  const char* before = nullptr;
  char* to = static_cast<char*>(y) + row_begin * out_bytes;
  for (std::int64_t row = row_begin; row < row_end; ++row, to += out_bytes) {
    const std::int64_t line = row / r.y.out * r.y.in + r.y.at[row % r.y.out * r.y.taps];
    const char* from = static_cast<const char*>(x) + line * in_bytes;
    if (from == before) {
      __builtin_memcpy(to, to - out_bytes, static_cast<std::size_t>(out_bytes));
    } else {
      move_row(r.x, bytes, from, to, move);
    }
    before = from;
  }
}

}  // namespace
}  // namespace ctk::kernels
