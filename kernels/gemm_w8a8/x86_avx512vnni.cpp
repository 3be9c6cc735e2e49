// gemm_w8a8 on AVX-512 VNNI: vpdpbusd adds four products of uint8 and int8 to an int32 sum, exactly. Serves gemm_w4a8
// too.
#if defined(__x86_64__) || defined(CTK_USE_SIMDE)

#include "kernels/epilogue_x86_avx512.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"
#include "kernels/gemm_w8a8/quad_panels.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 8, kPanels = 2;

// sums[p][i] += x . weights[p], x: the quad at `at` in every lane. In assembly: written as intrinsics, GCC 12 copies
// the sums around.
template <std::size_t M, std::size_t P>
inline void add_quad(__m512i (&sums)[P][M], std::size_t i, const char* at, const __m512i (&weights)[P]) {
#if defined(CTK_USE_SIMDE)
  std::int32_t quad;
  std::memcpy(&quad, at, sizeof(quad));
  for (std::size_t p = 0; p < P; ++p) {
    sums[p][i] = _mm512_dpbusd_epi32(sums[p][i], _mm512_set1_epi32(quad), weights[p]);
  }
#else
  const auto& bytes = *reinterpret_cast<const char(*)[kQuad]>(at);
  __m512i x;
  if constexpr (P == 2) {
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "vpdpbusd %[w0], %[x], %[sum0]\n\t"
        "vpdpbusd %[w1], %[x], %[sum1]"
        : [sum0] "+v"(sums[0][i]), [sum1] "+v"(sums[1][i]), [x] "=&v"(x)
        : [at] "m"(bytes), [w0] "v"(weights[0]), [w1] "v"(weights[1]));
  } else {
    __asm__(
        "vpbroadcastd %[at], %[x]\n\t"
        "vpdpbusd %[w0], %[x], %[sum0]"
        : [sum0] "+v"(sums[0][i]), [x] "=&v"(x)
        : [at] "m"(bytes), [w0] "v"(weights[0]));
  }
#endif
}

// What the rows of P panels from `column` on share. Weights are read from afar by the first tile of rows, unless those
// before have asked for them: each tile asks for its part of the next panels.
template <std::size_t P>
struct Panels {
  std::size_t column;
  const char* next;   // weights behind these
  std::size_t ahead;  // bytes of them to ask for at each quad
  __m512i bias[P];
  __m512 multiplier[P];
  __mmask16 exists[P];
  bool is_plain[P];  // as is_plain512() has it
};

// Rows row..row+M-1 of P panels.
template <std::size_t M, std::size_t P>
[[gnu::noinline]] void tile(const GemmStaged& g, const Finish512& finish, const Panels<P>& panels, std::size_t row) {
  const std::size_t quads_in_all = g.segments * g.segment_k / kQuad;
  const char* ahead = panels.next + row / kRows * quads_in_all * panels.ahead;
  __m512i acc[P][M];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    CTK_UNROLL
    for (std::size_t p = 0; p < P; ++p) acc[p][i] = panels.bias[p];
  }
  const std::size_t quads = g.segment_k / kQuad, panel_bytes = g.segments * g.segment_k * kColumns;
  const char* w = static_cast<const char*>(g.packed) + panels.column * g.segments * g.segment_k;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const char* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) a[i] = static_cast<const char*>(g.rows[row + i]) + g.offsets[s];
    for (std::size_t q = 0; q < quads; ++q, w += kColumns * kQuad, ahead += panels.ahead) {
      _mm_prefetch(ahead, _MM_HINT_T1);
      __m512i weights[P];
      CTK_UNROLL
      for (std::size_t p = 0; p < P; ++p) weights[p] = _mm512_loadu_si512(w + p * panel_bytes);
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) add_quad<M, P>(acc, i, a[i] + q * kQuad, weights);
    }
  }
  CTK_UNROLL
  for (std::size_t p = 0; p < P; ++p) {
    store_rows512<M>(finish, g.epilogue, acc[p], panels.multiplier[p], panels.is_plain[p], panels.exists[p], row,
                     panels.column + p * kColumns, g.c, g.c_stride);
  }
}

template <std::size_t P>
void columns_of(const GemmStaged& g, const Finish512& finish, std::size_t column, std::size_t columns) {
  Panels<P> panels;
  panels.column = column;
  // The panels behind are as many bytes, a line a quad and panel; past the last one asking is in vain but harmless.
  const std::size_t tiles = g.m / kRows;
  panels.next = static_cast<const char*>(g.packed) + (column + P * kColumns) * g.segments * g.segment_k;
  panels.ahead = tiles == 0 ? 0 : (P * kColumns * kQuad + tiles - 1) / tiles;
  for (std::size_t p = 0; p < P; ++p) {
    const std::size_t at = p * kColumns, left = columns - at;
    const __mmask16 exists = static_cast<__mmask16>(left < kColumns ? (1u << left) - 1 : 0xffff);
    panels.exists[p] = exists;
    panels.bias[p] = _mm512_maskz_loadu_epi32(exists, g.epilogue.bias + column + at);
    panels.multiplier[p] = _mm512_maskz_loadu_ps(exists, g.epilogue.multiplier + column + at);
    panels.is_plain[p] = is_plain512(g.epilogue, panels.multiplier[p]);
  }
  std::size_t row = 0;
  for (; row + kRows <= g.m; row += kRows) tile<kRows>(g, finish, panels, row);
  switch (g.m - row) {
    case 7:
      tile<7>(g, finish, panels, row);
      break;
    case 6:
      tile<6>(g, finish, panels, row);
      break;
    case 5:
      tile<5>(g, finish, panels, row);
      break;
    case 4:
      tile<4>(g, finish, panels, row);
      break;
    case 3:
      tile<3>(g, finish, panels, row);
      break;
    case 2:
      tile<2>(g, finish, panels, row);
      break;
    case 1:
      tile<1>(g, finish, panels, row);
      break;
    default:
      break;
  }
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish512 finish = finish512_of(g.epilogue);
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

extern const WinogradRow winograd_w8a8_6x16_x86_avx2, winograd_w8a8_4x4_x86_avx512vnni;

extern const GemmIntRow gemm_w8a8_8x32_x86_avx512vnni;
constinit const GemmIntRow gemm_w8a8_8x32_x86_avx512vnni{
    .isa = Isa::x86_avx512vnni,
    .name = "gemm_w8a8_8x32_x86_avx512vnni",
    .m_step = kRows,
    .n_step = kPanels * kColumns,
    .k_step = kQuad,
    .element_bytes = 1,
    .packed_bytes = panel_bytes<kQuad>,
    .pack = pack_panels<kQuad>,
    .stage = stage,
    .run_staged = run_staged,
    .winograd = &winograd_w8a8_6x16_x86_avx2,  // for weights that do not fit the larger tiles
    .winograd_channels = 64,
    .winograd_large = &winograd_w8a8_4x4_x86_avx512vnni,
    .winograd_needs_large = true,
};

}  // namespace ctk::kernels

#endif
