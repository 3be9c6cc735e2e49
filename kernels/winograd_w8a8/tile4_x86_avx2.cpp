// winograd_w8a8 with tiles of 4x4 outputs on AVX2: transforms on 16 channels at a time, products as in
// gemm_w8a8/x86_avx2.cpp.
#if defined(__x86_64__)

#include "kernels/winograd_w8a8/winograd_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/winograd_w8a8/products_x86_avx2.h"

namespace ctk::kernels {
namespace {

using Vector = __m256i;

inline Vector sum16(Vector a, Vector b) {
  return _mm256_add_epi16(a, b);
}
inline Vector difference16(Vector a, Vector b) {
  return _mm256_sub_epi16(a, b);
}
template <int kBy>
inline Vector shifted16(Vector a) {
  return _mm256_slli_epi16(a, kBy);
}
inline Vector sum32(Vector a, Vector b) {
  return _mm256_add_epi32(a, b);
}
inline Vector difference32(Vector a, Vector b) {
  return _mm256_sub_epi32(a, b);
}
template <int kBy>
inline Vector shifted32(Vector a) {
  return _mm256_slli_epi32(a, kBy);
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/winograd_w8a8/tile4_x86.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kSumsPitch = sums_pitch_of(kPlaces);

std::size_t scratch_bytes(std::size_t channels, std::size_t tiles) {
  return winograd_scratch_bytes(kPlaces, channels, tiles);
}

// Pixels of a tile: [4 rows][4 columns][the panel's halves], bias included.
inline void transform_tile(const std::int32_t* m, const std::int32_t* bias, __m256i pixels[kTile][kTile][2]) {
  const __m256i inverse = _mm256_set1_epi32(kInverseOf9);
  for (std::size_t half = 0; half < 2; ++half) {
    Vector rows[kTile][kSide];  // A^T m
    for (std::size_t x = 0; x < kSide; ++x) {
      Vector in[kSide], out[kTile];
      CTK_UNROLL
      for (std::size_t y = 0; y < kSide; ++y) in[y] = load(m + (y * kSide + x) * kColumns + half * 8);
      transform_out(in, out);
      CTK_UNROLL
      for (std::size_t y = 0; y < kTile; ++y) rows[y][x] = out[y];
    }
    const __m256i b = load(bias + half * 8);
    for (std::size_t i = 0; i < kTile; ++i) {
      Vector y[kTile];
      transform_out(rows[i], y);
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
