// What tiles of 4x4 outputs share on x86, whatever the width of a vector. The source that includes this gives before it
// `Vector`, kLanes (of int16), v_pitch(), v_place() and what is done to vectors: load, store, sum16, difference16,
// shifted16, sum32, difference32, shifted32. Internal linkage.
#pragma once

#include "kernels/intrinsics_x86.h"
#include "kernels/winograd_w8a8/weights.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kTile = 4, kSide = kTile4Side, kPlaces = kSide * kSide;
constexpr int kInverseOf9 = 0x38e38e39;  // modulo 2^32

std::size_t packed_bytes(std::size_t n, std::size_t channels) {
  return winograd_packed_bytes(kPlaces, n, channels);
}

void pack(const std::int8_t* codes, std::size_t n, std::size_t channels, void* packed) {
  winograd_pack(kTile4Weights, codes, n, channels, packed);
}

// out = B^T d, B^T = [4 0 -5 0 1 0; 0 -4 -4 1 1 0; 0 4 -4 -1 1 0; 0 -2 -1 2 1 0; 0 2 -1 -2 1 0; 0 4 0 -5 0 1].
inline void transform_six(const Vector (&d)[kSide], Vector (&out)[kSide]) {
  const Vector even = difference16(d[4], shifted16<2>(d[2])), odd = difference16(d[3], shifted16<2>(d[1]));
  const Vector near = difference16(d[4], d[2]), far = shifted16<1>(difference16(d[3], d[1]));
  out[0] = sum16(difference16(shifted16<2>(d[0]), d[2]), even);
  out[1] = sum16(even, odd);
  out[2] = difference16(even, odd);
  out[3] = sum16(near, far);
  out[4] = difference16(near, far);
  out[5] = difference16(sum16(d[5], shifted16<2>(difference16(d[1], d[3]))), d[3]);
}

// V = B^T d B of kLanes channels.
inline void transform_input(const std::int16_t* d, std::size_t row, std::size_t pixel, std::int16_t* v,
                            std::size_t place) {
  Vector columns[kSide][kSide];  // B^T d, [row][column]
  for (std::size_t x = 0; x < kSide; ++x) {
    Vector in[kSide], out[kSide];
    CTK_UNROLL
    for (std::size_t y = 0; y < kSide; ++y) in[y] = load(d + y * row + x * pixel);
    transform_six(in, out);
    CTK_UNROLL
    for (std::size_t y = 0; y < kSide; ++y) columns[y][x] = out[y];
  }
  for (std::size_t y = 0; y < kSide; ++y) {
    Vector out[kSide];
    transform_six(columns[y], out);
    CTK_UNROLL
    for (std::size_t x = 0; x < kSide; ++x) store(v + (y * kSide + x) * place, out[x]);
  }
}

void transform_inputs(const WinogradBlock& b, std::int16_t* v) {
  const std::size_t place = v_place(b.channels, b.tile_rows * b.tile_columns), pitch = v_pitch(b.channels);
  for (std::size_t y = 0; y < b.tile_rows; ++y) {
    for (std::size_t x = 0; x < b.tile_columns; ++x, v += pitch) {
      const std::int16_t* d = b.strip + kTile * (y * b.strip_row + x * b.channels);
      for (std::size_t c = 0; c < b.channels; c += kLanes) {
        transform_input(d + c, b.strip_row, b.channels, v + c, place);
      }
    }
  }
}

// y = A^T m, A^T = [1 1 1 1 1 0; 0 1 -1 2 -2 0; 0 1 1 4 4 0; 0 1 -1 8 -8 8].
inline void transform_out(const Vector (&m)[kSide], Vector (&y)[kTile]) {
  const Vector near_sum = sum32(m[1], m[2]), near = difference32(m[1], m[2]);
  const Vector far_sum = sum32(m[3], m[4]), far = difference32(m[3], m[4]);
  y[0] = sum32(sum32(m[0], near_sum), far_sum);
  y[1] = sum32(near, shifted32<1>(far));
  y[2] = sum32(near_sum, shifted32<2>(far_sum));
  y[3] = sum32(near, shifted32<3>(sum32(far, m[5])));
}

}  // namespace
}  // namespace ctk::kernels
