// gemm_w8a8 on AVX-512 VNNI: vpdpbusd adds four products of uint8 and int8 to an int32 sum, exactly. Serves gemm_w4a8
// too.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/gemm_w8a8/quad_panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 8, kPanels = 2;

inline __m256i load(const std::int32_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

inline __m512i quad_at(const char* at) {
  std::int32_t quad;
  std::memcpy(&quad, at, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

// Rows row..row+M-1 of P panels from `column` on, `columns` of whose columns exist. bias and multiplier: 16 * P
// elements.
template <std::size_t M, std::size_t P>
void tile(const GemmStaged& g, const Finish16& finish, std::size_t row, std::size_t column, std::size_t columns,
          const std::int32_t* bias, const float* multiplier) {
  __m512i acc[M][P];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    CTK_UNROLL
    for (std::size_t p = 0; p < P; ++p) acc[i][p] = _mm512_loadu_si512(bias + p * kColumns);
  }
  const std::size_t quads = g.segment_k / kQuad, panel_bytes = g.segments * g.segment_k * kColumns;
  const char* w = static_cast<const char*>(g.packed) + column * g.segments * g.segment_k;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const char* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) a[i] = static_cast<const char*>(g.rows[row + i]) + g.offsets[s];
    for (std::size_t q = 0; q < quads; ++q, w += kColumns * kQuad) {
      __m512i weights[P];
      CTK_UNROLL
      for (std::size_t p = 0; p < P; ++p) weights[p] = _mm512_loadu_si512(w + p * panel_bytes);
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) {
        const __m512i x = quad_at(a[i] + q * kQuad);
        CTK_UNROLL
        for (std::size_t p = 0; p < P; ++p) acc[i][p] = _mm512_dpbusd_epi32(acc[i][p], x, weights[p]);
      }
    }
  }
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    CTK_UNROLL
    for (std::size_t p = 0; p < P; ++p) {
      const std::size_t left = columns - p * kColumns;
      const float* m = multiplier + p * kColumns;
      std::int32_t sums[kColumns];  // in two halves for the epilogue
      _mm512_storeu_si512(sums, acc[i][p]);
      store16(finish, g.epilogue, load(sums), load(sums + 8), _mm256_loadu_ps(m), _mm256_loadu_ps(m + 8), row + i,
              column + p * kColumns, left < kColumns ? left : kColumns, g.c, g.c_stride);
    }
  }
}

template <std::size_t P>
void columns_of(const GemmStaged& g, const Finish16& finish, std::size_t column, std::size_t columns) {
  std::int32_t bias[P * kColumns] = {};
  float multiplier[P * kColumns] = {};
  std::memcpy(bias, g.epilogue.bias + column, columns * sizeof(bias[0]));
  std::memcpy(multiplier, g.epilogue.multiplier + column, columns * sizeof(multiplier[0]));
  std::size_t row = 0;
  for (; row + kRows <= g.m; row += kRows) tile<kRows, P>(g, finish, row, column, columns, bias, multiplier);
  switch (g.m - row) {
    case 7:
      tile<7, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 6:
      tile<6, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 5:
      tile<5, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 4:
      tile<4, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 3:
      tile<3, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 2:
      tile<2, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    case 1:
      tile<1, P>(g, finish, row, column, columns, bias, multiplier);
      break;
    default:
      break;
  }
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish16 finish = finish16_of(g.epilogue);
  for (std::size_t column = n_begin; column < n_end;) {
    const std::size_t left = n_end - column;
    if (left > kColumns) {
      const std::size_t columns = left < kPanels * kColumns ? left : kPanels * kColumns;
      columns_of<kPanels>(g, finish, column, columns);
      column += columns;
    } else {
      columns_of<1>(g, finish, column, left);
      column += left;
    }
  }
}

}  // namespace

extern const GemmIntRow gemm_w8a8_8x32_x86_avx512vnni;
constinit const GemmIntRow gemm_w8a8_8x32_x86_avx512vnni{
    .isa = Isa::x86_avx512vnni,
    .name = "gemm_w8a8_8x32_x86_avx512vnni",
    .m_step = kRows,
    .n_step = kPanels * kColumns,
    .k_step = kQuad,
    .element_bytes = 1,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .stage = stage,
    .run_staged = run_staged,
};

}  // namespace ctk::kernels

#endif
