// winograd_w8a8 with tiles of 4x4 outputs on AVX2: transforms on 16 channels at a time, products as in
// gemm_w8a8/x86_avx2.cpp.
#if defined(__x86_64__)

#include "kernels/winograd_w8a8/winograd_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/winograd_w8a8/products_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kTile = 4, kSide = kTile4Side, kPlaces = kSide * kSide, kSumsPitch = sums_pitch_of(kPlaces);

std::size_t scratch_bytes(std::size_t channels, std::size_t tiles) {
  return winograd_scratch_bytes(kPlaces, channels, tiles);
}

std::size_t packed_bytes(std::size_t n, std::size_t channels) {
  return winograd_packed_bytes(kPlaces, n, channels);
}

void pack(const std::int8_t* codes, std::size_t n, std::size_t channels, void* packed) {
  winograd_pack(kTile4Weights, codes, n, channels, packed);
}

inline __m256i twice(__m256i x) {
  return _mm256_slli_epi16(x, 1);
}
inline __m256i four_times(__m256i x) {
  return _mm256_slli_epi16(x, 2);
}
inline __m256i sum(__m256i a, __m256i b) {
  return _mm256_add_epi16(a, b);
}
inline __m256i difference(__m256i a, __m256i b) {
  return _mm256_sub_epi16(a, b);
}

// out[i * step] = B^T d, B^T = [4 0 -5 0 1 0; 0 -4 -4 1 1 0; 0 4 -4 -1 1 0; 0 -2 -1 2 1 0; 0 2 -1 -2 1 0; 0 4 0 -5 0
// 1].
inline void transform_six(const std::int16_t* d, std::size_t d_step, std::int16_t* out, std::size_t step) {
  const __m256i d1 = load(d + d_step), d2 = load(d + 2 * d_step), d3 = load(d + 3 * d_step), d4 = load(d + 4 * d_step);
  const __m256i even = difference(d4, four_times(d2)), odd = difference(d3, four_times(d1));
  store(out + step, sum(even, odd));
  store(out + 2 * step, difference(even, odd));
  const __m256i near = difference(d4, d2), far = twice(difference(d3, d1));
  store(out + 3 * step, sum(near, far));
  store(out + 4 * step, difference(near, far));
  store(out, sum(difference(four_times(load(d)), d2), even));
  store(out + 5 * step, difference(sum(load(d + 5 * d_step), four_times(difference(d1, d3))), d3));
}

// V = B^T d B of 16 channels.
inline void transform_input(const std::int16_t* d, std::size_t row, std::size_t pixel, std::int16_t* v,
                            std::size_t place) {
  alignas(32) std::int16_t columns[kSide][kSide][kLanes];  // B^T d
  for (std::size_t x = 0; x < kSide; ++x) transform_six(d + x * pixel, row, columns[0][x], kSide * kLanes);
  for (std::size_t y = 0; y < kSide; ++y) transform_six(columns[y][0], kLanes, v + y * kSide * place, place);
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
inline void transform_out(const std::int32_t* m, std::size_t step, __m256i y[4]) {
  const __m256i m1 = load(m + step), m2 = load(m + 2 * step), m3 = load(m + 3 * step), m4 = load(m + 4 * step);
  const __m256i near_sum = _mm256_add_epi32(m1, m2), near = _mm256_sub_epi32(m1, m2);
  const __m256i far_sum = _mm256_add_epi32(m3, m4), far = _mm256_sub_epi32(m3, m4);
  y[0] = _mm256_add_epi32(_mm256_add_epi32(load(m), near_sum), far_sum);
  y[1] = _mm256_add_epi32(near, _mm256_slli_epi32(far, 1));
  y[2] = _mm256_add_epi32(near_sum, _mm256_slli_epi32(far_sum, 2));
  y[3] = _mm256_add_epi32(near, _mm256_slli_epi32(_mm256_add_epi32(far, load(m + 5 * step)), 3));
}

// Pixels of a tile: [4 rows][4 columns][the panel's halves], bias included.
inline void transform_tile(const std::int32_t* m, const std::int32_t* bias, __m256i pixels[kTile][kTile][2]) {
  const __m256i inverse = _mm256_set1_epi32(0x38e38e39);  // of 9 modulo 2^32
  for (std::size_t half = 0; half < 2; ++half) {
    alignas(32) std::int32_t rows[kTile][kSide][8];  // A^T m
    for (std::size_t x = 0; x < kSide; ++x) {
      __m256i y[kTile];
      transform_out(m + x * kColumns + half * 8, kSide * kColumns, y);
      CTK_UNROLL
      for (std::size_t i = 0; i < kTile; ++i) store(rows[i][x], y[i]);
    }
    const __m256i b = load(bias + half * 8);
    for (std::size_t i = 0; i < kTile; ++i) {
      __m256i y[kTile];
      transform_out(rows[i][0], 8, y);
      CTK_UNROLL
      for (std::size_t j = 0; j < kTile; ++j) {
        pixels[i][j][half] = _mm256_add_epi32(_mm256_srai_epi32(_mm256_mullo_epi32(y[j], inverse), 6), b);
      }
    }
  }
}

void finish_panel(const WinogradBlock& b, const Finish16& finish, const WinogradPanel& panel, const std::int32_t* m) {
  const __m256 multiplier0 = _mm256_loadu_ps(panel.multiplier), multiplier1 = _mm256_loadu_ps(panel.multiplier + 8);
  const bool is_plain = is_plain16(b.epilogue, multiplier0, multiplier1, panel.columns);
  for (std::size_t ty = 0; ty < b.tile_rows; ++ty) {
    for (std::size_t tx = 0; tx < b.tile_columns; ++tx, m += kSumsPitch) {
      __m256i pixels[kTile][kTile][2];
      transform_tile(m, panel.bias, pixels);
      for (std::size_t y = 0; y < kTile && kTile * ty + y < b.height; ++y) {
        const std::size_t first = (kTile * ty + y) * b.c_width + kTile * tx;
        if (is_plain && kTile * (tx + 1) <= b.width) {
          store_rows16<kTile>(finish, b.epilogue, pixels[y], multiplier0, multiplier1, true, first, panel.column,
                              panel.columns, b.c, b.c_stride);
          continue;
        }
        for (std::size_t x = 0; x < kTile && kTile * tx + x < b.width; ++x) {
          store16(finish, b.epilogue, pixels[y][x][0], pixels[y][x][1], multiplier0, multiplier1, first + x,
                  panel.column, panel.columns, b.c, b.c_stride);
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

extern const WinogradRow winograd_w8a8_4x4_x86_avx2;
constinit const WinogradRow winograd_w8a8_4x4_x86_avx2{
    .name = "winograd_w8a8_4x4_x86_avx2",
    .tile = kTile,
    .m_step = kRows,
    .n_step = kColumns,
    .packed_bytes = packed_bytes,
    .fits = tile4_fits,
    .pack = pack,
    .stage = widen,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels

#endif
