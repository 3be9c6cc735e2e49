// gemm_w4a8 on AVX2: vpmaddubsw, whose 16-bit result cannot saturate here, summed in 16 bits over eight quads of k
// before it is widened: |sum| <= 8 * 2 * 255 * 8 = 32640.
#if defined(__x86_64__)

#include "kernels/gemm_w4a8/gemm_w4a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/quad_panels.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6, kQuadsIn16Bits = 8;

inline __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// sum0 += maddubs(x, w0), sum1 += maddubs(x, w1), x: the quad at `at` in every lane. The twelve sums of a tile, two
// weights and two temporaries fill the registers to the last; written as intrinsics, GCC 12 reorders them and spills.
inline void add_quad(__m256i& sum0, __m256i& sum1, const char* at, __m256i w0, __m256i w1) {
  __m256i x, product;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddubsw %[w0], %[x], %[product]\n\t"
      "vpmaddubsw %[w1], %[x], %[x]\n\t"
      "vpaddw %[product], %[sum0], %[sum0]\n\t"
      "vpaddw %[x], %[sum1], %[sum1]"
      : [sum0] "+x"(sum0), [sum1] "+x"(sum1), [x] "=&x"(x), [product] "=&x"(product)
      : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w0] "x"(w0), [w1] "x"(w1));
}

// The same for eight columns.
inline void add_quad(__m256i& sum, const char* at, __m256i w) {
  __m256i x;
  __asm__(
      "vpbroadcastd %[at], %[x]\n\t"
      "vpmaddubsw %[w], %[x], %[x]\n\t"
      "vpaddw %[x], %[sum], %[sum]"
      : [sum] "+x"(sum), [x] "=&x"(x)
      : [at] "m"(*reinterpret_cast<const char(*)[kQuad]>(at)), [w] "x"(w));
}

// Rows row..row+M-1 of 16 columns. bias and multiplier: 16 elements. H: halves of the panel, 1 when no more than eight
// of its columns exist.
template <std::size_t M, std::size_t H>
void tile(const GemmStaged& g, const Finish16& finish, std::size_t row, std::size_t column, std::size_t columns,
          const std::int32_t* bias, const float* multiplier) {
  // 32-bit sums of the even and odd halves of quads live in memory; they are met once in eight quads.
  __m256i sums[M][2];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    sums[i][0] = load(bias);
    sums[i][1] = load(bias + 8);
  }
  const __m256i ones = _mm256_set1_epi16(1);
  const char* w = static_cast<const char*>(g.packed) + column * g.segments * g.segment_k;
  const std::size_t quads = g.segment_k / kQuad;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const char* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) {
      a[i] = static_cast<const char*>(g.rows[row + i]) + g.offsets[s];
      __asm__("" : "+r"(a[i]));  // keep the sum: adding it up again for every load costs a slot each
    }
    for (std::size_t begin = 0; begin < quads; begin += kQuadsIn16Bits) {
      const std::size_t end = quads - begin < kQuadsIn16Bits ? quads : begin + kQuadsIn16Bits;
      __m256i acc[M][2];
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
      for (std::size_t q = begin; q < end; ++q, w += kColumns * kQuad) {
        if constexpr (H == 2) {
          const __m256i w0 = load(w), w1 = load(w + 32);
          CTK_UNROLL
          for (std::size_t i = 0; i < M; ++i) add_quad(acc[i][0], acc[i][1], a[i] + q * kQuad, w0, w1);
        } else {
          const __m256i w0 = load(w);
          CTK_UNROLL
          for (std::size_t i = 0; i < M; ++i) add_quad(acc[i][0], a[i] + q * kQuad, w0);
        }
      }
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) {
        sums[i][0] = _mm256_add_epi32(sums[i][0], _mm256_madd_epi16(acc[i][0], ones));
        sums[i][1] = _mm256_add_epi32(sums[i][1], _mm256_madd_epi16(acc[i][1], ones));
      }
    }
  }
  const __m256 multiplier0 = _mm256_loadu_ps(multiplier), multiplier1 = _mm256_loadu_ps(multiplier + 8);
  store_rows16<M>(finish, g.epilogue, sums, multiplier0, multiplier1,
                  is_plain16(g.epilogue, multiplier0, multiplier1, columns), row, column, columns, g.c, g.c_stride);
}

template <std::size_t H>
void all_rows(const GemmStaged& g, const Finish16& finish, std::size_t column, std::size_t columns,
              const std::int32_t* bias, const float* multiplier) {
  std::size_t row = 0;
  for (; row + kRows <= g.m; row += kRows) tile<kRows, H>(g, finish, row, column, columns, bias, multiplier);
  if (g.m - row == 5) tile<5, H>(g, finish, row, column, columns, bias, multiplier);
  if (g.m - row == 4) tile<4, H>(g, finish, row, column, columns, bias, multiplier);
  if (g.m - row == 3) tile<3, H>(g, finish, row, column, columns, bias, multiplier);
  if (g.m - row == 2) tile<2, H>(g, finish, row, column, columns, bias, multiplier);
  if (g.m - row == 1) tile<1, H>(g, finish, row, column, columns, bias, multiplier);
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish16 finish = finish16_of(g.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = n_end - column < kColumns ? n_end - column : kColumns;
    std::int32_t bias[kColumns] = {};
    float multiplier[kColumns] = {};
    std::memcpy(bias, g.epilogue.bias + column, columns * sizeof(bias[0]));
    std::memcpy(multiplier, g.epilogue.multiplier + column, columns * sizeof(multiplier[0]));
    if (columns > 8) {
      all_rows<2>(g, finish, column, columns, bias, multiplier);
    } else {
      all_rows<1>(g, finish, column, columns, bias, multiplier);
    }
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_6x16_x86_avx2, winograd_w8a8_4x4_x86_avx2;
extern const GemmIntRow gemm_w4a8_6x16_x86_avx2;
constinit const GemmIntRow gemm_w4a8_6x16_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "gemm_w4a8_6x16_x86_avx2",
    .m_step = kRows,
    .n_step = kColumns,
    .k_step = kQuad,
    .element_bytes = 1,
    .packed_bytes = panel_bytes<kQuad>,
    .pack = pack_panels<kQuad>,
    .stage = stage,
    .run_staged = run_staged,
    .winograd = &winograd_w8a8_6x16_x86_avx2,  // beats 8-bit products once its transforms are paid for
    .winograd_channels = 24,
    .winograd_large = &winograd_w8a8_4x4_x86_avx2,
};

}  // namespace ctk::kernels

#endif
