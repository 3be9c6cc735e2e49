// gemm_w8a8 on AVX-VNNI: vpdpbusd on 256 bits, for processors without AVX-512. Serves gemm_w4a8 too.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/gemm_w8a8/quad_panels.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6;

inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// sum0 += x . w0, sum1 += x . w1, x: the quad at `at` in every lane. In assembly for the reason given in x86_avx2.cpp.
inline void add_quad(__m256i& sum0, __m256i& sum1, const char* at, __m256i w0, __m256i w1) {
#if defined(CTK_USE_SIMDE)
  std::int32_t quad;
  std::memcpy(&quad, at, sizeof(quad));
  sum0 = _mm256_dpbusd_epi32(sum0, _mm256_set1_epi32(quad), w0);
  sum1 = _mm256_dpbusd_epi32(sum1, _mm256_set1_epi32(quad), w1);
#else
  __m256i x;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "%{vex%} vpdpbusd %[w0], %[x], %[sum0]\n\t"
      "%{vex%} vpdpbusd %[w1], %[x], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x)
      : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
#endif
}

// Rows row..row+M-1 of 16 columns. bias and multiplier: 16 elements.
template <std::size_t M>
void tile(const GemmStaged& g, const Finish16& finish, std::size_t row, std::size_t column, std::size_t columns,
          const std::int32_t* bias, const float* multiplier) {
  __m256i acc[M][2];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    acc[i][0] = load(bias);
    acc[i][1] = load(bias + 8);
  }
  const char* w = static_cast<const char*>(g.packed) + column * g.segments * g.segment_k;
  const std::size_t quads = g.segment_k / kQuad;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const char* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) a[i] = static_cast<const char*>(g.rows[row + i]) + g.offsets[s];
    for (std::size_t q = 0; q < quads; ++q, w += kColumns * kQuad) {
      const __m256i w0 = load(w), w1 = load(w + 32);
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) add_quad(acc[i][0], acc[i][1], a[i] + q * kQuad, w0, w1);
    }
  }
  const __m256 multiplier0 = _mm256_loadu_ps(multiplier), multiplier1 = _mm256_loadu_ps(multiplier + 8);
  store_rows16<M>(finish, g.epilogue, acc, multiplier0, multiplier1,
                  is_plain16(g.epilogue, multiplier0, multiplier1, columns), row, column, columns, g.c, g.c_stride);
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish16 finish = finish16_of(g.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = n_end - column < kColumns ? n_end - column : kColumns;
    std::int32_t bias[kColumns] = {};
    float multiplier[kColumns] = {};
    std::memcpy(bias, g.epilogue.bias + column, columns * sizeof(bias[0]));
    std::memcpy(multiplier, g.epilogue.multiplier + column, columns * sizeof(multiplier[0]));
    std::size_t row = 0;
    for (; row + kRows <= g.m; row += kRows) tile<kRows>(g, finish, row, column, columns, bias, multiplier);
    switch (g.m - row) {
      case 5:
        tile<5>(g, finish, row, column, columns, bias, multiplier);
        break;
      case 4:
        tile<4>(g, finish, row, column, columns, bias, multiplier);
        break;
      case 3:
        tile<3>(g, finish, row, column, columns, bias, multiplier);
        break;
      case 2:
        tile<2>(g, finish, row, column, columns, bias, multiplier);
        break;
      case 1:
        tile<1>(g, finish, row, column, columns, bias, multiplier);
        break;
      default:
        break;
    }
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_6x16_x86_avx2, winograd_w8a8_4x4_x86_avx2;

extern const GemmIntRow gemm_w8a8_6x16_x86_avxvnni;
constinit const GemmIntRow gemm_w8a8_6x16_x86_avxvnni{
    .isa = Isa::x86_avxvnni,
    .name = "gemm_w8a8_6x16_x86_avxvnni",
    .m_step = kRows,
    .n_step = kColumns,
    .k_step = kQuad,
    .element_bytes = 1,
    .packed_bytes = panel_bytes<kQuad>,
    .pack = pack_panels<kQuad>,
    .stage = stage,
    .run_staged = run_staged,
    .winograd = &winograd_w8a8_6x16_x86_avx2,  // for weights that do not fit the larger tiles
    .winograd_channels = 64,
    .winograd_large = &winograd_w8a8_4x4_x86_avx2,
    .winograd_needs_large = true,
};

}  // namespace ctk::kernels

#endif
