// winograd_w8a8 on AVX2: transforms on 16 channels at a time, products as in gemm_w8a8/x86_avx2.cpp.
#if defined(__x86_64__)

#include "kernels/winograd_w8a8/winograd_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/winograd_w8a8/products_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kPlaces = 16, kSumsPitch = sums_pitch_of(kPlaces);

std::size_t scratch_bytes(std::size_t channels, std::size_t tiles) {
  return winograd_scratch_bytes(kPlaces, channels, tiles);
}

std::size_t packed_bytes(std::size_t n, std::size_t channels) {
  return winograd_packed_bytes(kPlaces, n, channels);
}

bool fits(const std::int8_t*, std::size_t, std::size_t channels) {
  return channels <= kWinogradMostChannels;
}

// 2G with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
constexpr int kWeights[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};

void pack(const std::int8_t* codes, std::size_t n, std::size_t channels, void* packed) {
  winograd_pack(kWeights, codes, n, channels, packed);
}

// One row of B^T d: a and b are two input rows, combined before this; then the same along the row.
inline void finish_row(__m256i d0, __m256i d1, __m256i d2, __m256i d3, std::int16_t* v, std::size_t place) {
  store(v, _mm256_sub_epi16(d0, d2));
  store(v + place, _mm256_add_epi16(d1, d2));
  store(v + 2 * place, _mm256_sub_epi16(d2, d1));
  store(v + 3 * place, _mm256_sub_epi16(d1, d3));
}

inline __m256i minus(const std::int16_t* a, const std::int16_t* b) {
  return _mm256_sub_epi16(load(a), load(b));
}
inline __m256i plus(const std::int16_t* a, const std::int16_t* b) {
  return _mm256_add_epi16(load(a), load(b));
}

// V = B^T d B of 16 channels, B^T = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1].
inline void transform_input(const std::int16_t* d, std::size_t row, std::size_t pixel, std::int16_t* v,
                            std::size_t place) {
  const std::int16_t *r0 = d, *r1 = d + row, *r2 = d + 2 * row, *r3 = d + 3 * row;
  const std::size_t p = pixel;
  finish_row(minus(r0, r2), minus(r0 + p, r2 + p), minus(r0 + 2 * p, r2 + 2 * p), minus(r0 + 3 * p, r2 + 3 * p), v,
             place);
  finish_row(plus(r1, r2), plus(r1 + p, r2 + p), plus(r1 + 2 * p, r2 + 2 * p), plus(r1 + 3 * p, r2 + 3 * p),
             v + 4 * place, place);
  finish_row(minus(r2, r1), minus(r2 + p, r1 + p), minus(r2 + 2 * p, r1 + 2 * p), minus(r2 + 3 * p, r1 + 3 * p),
             v + 8 * place, place);
  finish_row(minus(r1, r3), minus(r1 + p, r3 + p), minus(r1 + 2 * p, r3 + 2 * p), minus(r1 + 3 * p, r3 + 3 * p),
             v + 12 * place, place);
}

void transform_inputs(const WinogradBlock& b, std::int16_t* v) {
  const std::size_t place = v_place(b.channels, b.tile_rows * b.tile_columns), pitch = v_pitch(b.channels);
  for (std::size_t y = 0; y < b.tile_rows; ++y) {
    for (std::size_t x = 0; x < b.tile_columns; ++x, v += pitch) {
      const std::int16_t* d = b.strip + 2 * y * b.strip_row + 2 * x * b.channels;
      for (std::size_t c = 0; c < b.channels; c += kLanes)
        transform_input(d + c, b.strip_row, b.channels, v + c, place);
    }
  }
}

inline __m256i sum3(__m256i a, __m256i b, __m256i c) {
  return _mm256_add_epi32(_mm256_add_epi32(a, b), c);
}
inline __m256i rest3(__m256i a, __m256i b, __m256i c) {
  return _mm256_sub_epi32(_mm256_sub_epi32(a, b), c);
}

// y = A^T m A / 4 + bias of eight columns, A^T = [1 1 1 0; 0 1 -1 -1]. y: the tile's pixels in row order.
inline void transform_output(const std::int32_t* m, __m256i bias, __m256i y[4]) {
  __m256i upper[4], lower[4];
  CTK_UNROLL
  for (std::size_t j = 0; j < 4; ++j) {
    const __m256i m1 = load(m + (4 + j) * kColumns), m2 = load(m + (8 + j) * kColumns);
    upper[j] = sum3(m1, m2, load(m + j * kColumns));
    lower[j] = rest3(m1, m2, load(m + (12 + j) * kColumns));
  }
  y[0] = sum3(upper[0], upper[1], upper[2]);
  y[1] = rest3(upper[1], upper[2], upper[3]);
  y[2] = sum3(lower[0], lower[1], lower[2]);
  y[3] = rest3(lower[1], lower[2], lower[3]);
  CTK_UNROLL
  for (std::size_t i = 0; i < 4; ++i) y[i] = _mm256_add_epi32(_mm256_srai_epi32(y[i], 2), bias);
}

void finish_panel(const WinogradBlock& b, const Finish16& finish, const WinogradPanel& panel, const std::int32_t* m) {
  const __m256 multiplier0 = _mm256_loadu_ps(panel.multiplier), multiplier1 = _mm256_loadu_ps(panel.multiplier + 8);
  const bool is_plain = is_plain16(b.epilogue, multiplier0, multiplier1, panel.columns);
  for (std::size_t ty = 0; ty < b.tile_rows; ++ty) {
    for (std::size_t tx = 0; tx < b.tile_columns; ++tx, m += kSumsPitch) {
      __m256i y0[4], y1[4];
      transform_output(m, load(panel.bias), y0);
      transform_output(m + 8, load(panel.bias + 8), y1);
      for (std::size_t dy = 0; dy < 2 && 2 * ty + dy < b.height; ++dy) {
        const std::size_t pixel = (2 * ty + dy) * b.c_width + 2 * tx;
        const __m256i both[2][2] = {{y0[2 * dy], y1[2 * dy]}, {y0[2 * dy + 1], y1[2 * dy + 1]}};
        if (is_plain && 2 * tx + 1 < b.width) {
          store_rows16<2>(finish, b.epilogue, both, multiplier0, multiplier1, true, pixel, panel.column, panel.columns,
                          b.c, b.c_stride);
          continue;
        }
        for (std::size_t dx = 0; dx < 2 && 2 * tx + dx < b.width; ++dx) {
          store16(finish, b.epilogue, both[dx][0], both[dx][1], multiplier0, multiplier1, pixel + dx, panel.column,
                  panel.columns, b.c, b.c_stride);
        }
      }
    }
  }
}

void run(const WinogradBlock& b, std::size_t n_begin, std::size_t n_end) {
  std::int16_t* v = static_cast<std::int16_t*>(b.scratch);
  std::int32_t* sums = reinterpret_cast<std::int32_t*>(v + kPlaces * v_place(b.channels, b.tile_rows * b.tile_columns));
  transform_inputs(b, v);
  const Finish16 finish = finish16_of(b.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const WinogradPanel panel = winograd_panel(b, kPlaces, column, n_end);
    panel_products(b, kPlaces, panel, v, sums);
    finish_panel(b, finish, panel, sums);
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_6x16_x86_avx2;
constinit const WinogradRow winograd_w8a8_6x16_x86_avx2{
    .name = "winograd_w8a8_6x16_x86_avx2",
    .tile = 2,
    .m_step = kRows,
    .n_step = kColumns,
    .packed_bytes = packed_bytes,
    .fits = fits,
    .pack = pack,
    .stage = widen,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels

#endif
