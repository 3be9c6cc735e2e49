// winograd_w8a8 on AVX2: transforms on 16 channels at a time, products as in gemm_w8a8/x86_avx2.cpp.
//
// Packed weights: [n / 16][16 places][channels / 2][16 columns][2 channels] int16, zero past n and channels.
// Scratch: transformed inputs V [16 places][tiles][channels] int16, then one panel's sums M [tiles][16 places][16
// columns].
#if defined(__x86_64__)

#include "kernels/winograd_w8a8/winograd_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/pair_step_x86_avx2.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6, kColumns = 16, kPlaces = 16, kLanes = 16;
constexpr std::size_t kSumsPitch = kPlaces * kColumns + 16;  // odd number of cache lines: tiles do not share sets

std::size_t pairs_of(std::size_t channels) {
  return (channels + 1) / 2;
}

// Elements from one tile's channels to the next. Multiples of 512 bytes would fall on few cache sets.
std::size_t v_pitch(std::size_t channels) {
  const std::size_t pitch = (channels + kLanes - 1) / kLanes * kLanes;
  return pitch % 256 == 0 ? pitch + 32 : pitch;
}

std::size_t v_place(std::size_t channels, std::size_t tiles) {
  return tiles * v_pitch(channels) + 32;
}

std::size_t scratch_bytes(std::size_t channels, std::size_t tiles) {
  return kPlaces * v_place(channels, tiles) * sizeof(std::int16_t) + tiles * kSumsPitch * sizeof(std::int32_t);
}

std::size_t packed_bytes(std::size_t n, std::size_t channels) {
  return (n + kColumns - 1) / kColumns * kPlaces * pairs_of(channels) * kColumns * 2 * sizeof(std::int16_t);
}

// 2G with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
constexpr int kWeights[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};

std::int16_t transformed(const std::int8_t* w, std::size_t place) {
  int sum = 0;
  for (std::size_t y = 0; y < 3; ++y) {
    for (std::size_t x = 0; x < 3; ++x) sum += kWeights[place / 4][y] * kWeights[place % 4][x] * w[y * 3 + x];
  }
  return static_cast<std::int16_t>(sum);
}

void pack(const std::int8_t* codes, std::size_t n, std::size_t channels, void* packed) {
  std::int16_t* out = static_cast<std::int16_t*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kColumns) {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      for (std::size_t pair = 0; pair < pairs_of(channels); ++pair) {
        for (std::size_t column = panel; column < panel + kColumns; ++column) {
          for (std::size_t k = 2 * pair; k < 2 * pair + 2; ++k) {
            const bool exists = column < n && k < channels;
            *out++ = exists ? transformed(codes + (column * channels + k) * 9, place) : std::int16_t{0};
          }
        }
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

// M tiles of one place times 16 columns. H: halves of the panel, 1 when no more than eight of its columns exist.
template <std::size_t M, std::size_t H>
void products(const std::int16_t* v, std::size_t pitch, const std::int16_t* w, std::size_t pairs, std::int32_t* sums) {
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
    store(sums + i * kSumsPitch, acc[i][0]);
    store(sums + i * kSumsPitch + 8, acc[i][1]);
  }
}

template <std::size_t H>
void all_products(const std::int16_t* v, std::size_t tiles, std::size_t pitch, const std::int16_t* w, std::size_t pairs,
                  std::int32_t* sums) {
  std::size_t t = 0;
  for (; t + kRows <= tiles; t += kRows) products<kRows, H>(v + t * pitch, pitch, w, pairs, sums + t * kSumsPitch);
  v += t * pitch;
  sums += t * kSumsPitch;
  if (tiles - t == 5) products<5, H>(v, pitch, w, pairs, sums);
  if (tiles - t == 4) products<4, H>(v, pitch, w, pairs, sums);
  if (tiles - t == 3) products<3, H>(v, pitch, w, pairs, sums);
  if (tiles - t == 2) products<2, H>(v, pitch, w, pairs, sums);
  if (tiles - t == 1) products<1, H>(v, pitch, w, pairs, sums);
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

// Columns column..column+15 of every tile; `columns` of them exist. bias and multiplier: 16 elements.
void finish_panel(const WinogradBlock& b, const Finish16& finish, const std::int32_t* m, std::size_t column,
                  std::size_t columns, const std::int32_t* bias, const float* multiplier) {
  const __m256 multiplier0 = _mm256_loadu_ps(multiplier), multiplier1 = _mm256_loadu_ps(multiplier + 8);
  const bool is_plain = is_plain16(b.epilogue, multiplier0, multiplier1, columns);
  for (std::size_t ty = 0; ty < b.tile_rows; ++ty) {
    for (std::size_t tx = 0; tx < b.tile_columns; ++tx, m += kSumsPitch) {
      __m256i y0[4], y1[4];
      transform_output(m, load(bias), y0);
      transform_output(m + 8, load(bias + 8), y1);
      for (std::size_t dy = 0; dy < 2 && 2 * ty + dy < b.height; ++dy) {
        const std::size_t pixel = (2 * ty + dy) * b.c_width + 2 * tx;
        const __m256i both[2][2] = {{y0[2 * dy], y1[2 * dy]}, {y0[2 * dy + 1], y1[2 * dy + 1]}};
        if (is_plain && 2 * tx + 1 < b.width) {
          store_rows16<2>(finish, b.epilogue, both, multiplier0, multiplier1, true, pixel, column, columns, b.c,
                          b.c_stride);
          continue;
        }
        for (std::size_t dx = 0; dx < 2 && 2 * tx + dx < b.width; ++dx) {
          store16(finish, b.epilogue, both[dx][0], both[dx][1], multiplier0, multiplier1, pixel + dx, column, columns,
                  b.c, b.c_stride);
        }
      }
    }
  }
}

void run(const WinogradBlock& b, std::size_t n_begin, std::size_t n_end) {
  const std::size_t tiles = b.tile_rows * b.tile_columns, pairs = pairs_of(b.channels);
  const std::size_t place = v_place(b.channels, tiles), pitch = v_pitch(b.channels);
  std::int16_t* v = static_cast<std::int16_t*>(b.scratch);
  std::int32_t* sums = reinterpret_cast<std::int32_t*>(v + kPlaces * place);
  transform_inputs(b, v);
  const Finish16 finish = finish16_of(b.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::int16_t* w = static_cast<const std::int16_t*>(b.packed) + column * kPlaces * pairs * 2;
    const std::size_t columns = n_end - column < kColumns ? n_end - column : kColumns;
    for (std::size_t i = 0; i < kPlaces; ++i) {
      const std::int16_t* weights = w + i * pairs * 2 * kColumns;
      if (columns > 8) {
        all_products<2>(v + i * place, tiles, pitch, weights, pairs, sums + i * kColumns);
      } else {
        all_products<1>(v + i * place, tiles, pitch, weights, pairs, sums + i * kColumns);
      }
    }
    std::int32_t bias[kColumns] = {};
    float multiplier[kColumns] = {};
    std::memcpy(bias, b.epilogue.bias + column, columns * sizeof(bias[0]));
    std::memcpy(multiplier, b.epilogue.multiplier + column, columns * sizeof(multiplier[0]));
    finish_panel(b, finish, sums, column, columns, bias, multiplier);
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_6x16_x86_avx2;
constinit const WinogradRow winograd_w8a8_6x16_x86_avx2{
    .name = "winograd_w8a8_6x16_x86_avx2",
    .m_step = kRows,
    .n_step = kColumns,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .stage = widen,
    .scratch_bytes = scratch_bytes,
    .run = run,
};

}  // namespace ctk::kernels

#endif
