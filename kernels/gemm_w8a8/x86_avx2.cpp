// gemm_w8a8 on AVX2: vpmaddwd on int16. The saturating vpmaddubsw has the same multiply rate once its pairs are
// widened, so exactness costs nothing but the widening of activations, done once per block.
//
// Packed weights: panels of pairs (panels.h).
#if defined(__x86_64__)

#include "kernels/gemm_w8a8/gemm_w8a8.h"

#include "kernels/epilogue_x86_avx2.h"
#include "kernels/gemm_w8a8/pair_step_x86_avx2.h"
#include "kernels/gemm_w8a8/panels.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6, kPair = 2;

// 16 columns of the product: what the tiles of one panel share.
struct Panel {
  const std::int8_t* weights;
  std::size_t column, columns;
  __m256i bias0, bias1;
  __m256 multiplier0, multiplier1;
  bool is_plain;
};

inline __m256i widened(const std::int8_t* w) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
}

// Rows row..row+M-1. H: halves of the panel, 1 when no more than eight of its columns exist.
template <std::size_t M, std::size_t H>
void tile(const GemmStaged& g, const Finish16& finish, const Panel& panel, std::size_t row) {
  __m256i acc[M][2];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    acc[i][0] = panel.bias0;
    acc[i][1] = panel.bias1;
  }
  const std::int8_t* w = panel.weights;
  const std::size_t pairs = g.segment_k / kPair;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const char* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) {
      a[i] = static_cast<const char*>(g.rows[row + i]) + g.offsets[s];
      __asm__("" : "+r"(a[i]));  // keep the sum: adding it up again for every load costs a slot each
    }
    for (std::size_t p = 0; p < pairs; ++p, w += kColumns * kPair) {
      if constexpr (H == 2) {
        const __m256i w0 = widened(w), w1 = widened(w + 16);
        CTK_UNROLL
        for (std::size_t i = 0; i < M; ++i) add_pair(acc[i][0], acc[i][1], a[i] + p * sizeof(std::int32_t), w0, w1);
      } else {
        const __m256i w0 = widened(w);
        CTK_UNROLL
        for (std::size_t i = 0; i < M; ++i) add_pair(acc[i][0], a[i] + p * sizeof(std::int32_t), w0);
      }
    }
  }
  store_rows16<M>(finish, g.epilogue, acc, panel.multiplier0, panel.multiplier1, panel.is_plain, row, panel.column,
                  panel.columns, g.c, g.c_stride);
}

Panel panel_at(const GemmStaged& g, std::size_t column, std::size_t n_end) {
  const std::size_t columns = n_end - column < kColumns ? n_end - column : kColumns;
  std::int32_t bias[kColumns] = {};
  float multiplier[kColumns] = {};
  std::memcpy(bias, g.epilogue.bias + column, columns * sizeof(bias[0]));
  std::memcpy(multiplier, g.epilogue.multiplier + column, columns * sizeof(multiplier[0]));
  Panel panel;
  panel.weights = static_cast<const std::int8_t*>(g.packed) + column * g.segments * g.segment_k;
  panel.column = column;
  panel.columns = columns;
  panel.bias0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bias));
  panel.bias1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bias + 8));
  panel.multiplier0 = _mm256_loadu_ps(multiplier);
  panel.multiplier1 = _mm256_loadu_ps(multiplier + 8);
  panel.is_plain = is_plain16(g.epilogue, panel.multiplier0, panel.multiplier1, columns);
  return panel;
}

template <std::size_t H>
void all_rows(const GemmStaged& g, const Finish16& finish, const Panel& panel) {
  std::size_t row = 0;
  for (; row + kRows <= g.m; row += kRows) tile<kRows, H>(g, finish, panel, row);
  if (g.m - row == 5) tile<5, H>(g, finish, panel, row);
  if (g.m - row == 4) tile<4, H>(g, finish, panel, row);
  if (g.m - row == 3) tile<3, H>(g, finish, panel, row);
  if (g.m - row == 2) tile<2, H>(g, finish, panel, row);
  if (g.m - row == 1) tile<1, H>(g, finish, panel, row);
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish16 finish = finish16_of(g.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const Panel panel = panel_at(g, column, n_end);
    if (panel.columns > 8) {
      all_rows<2>(g, finish, panel);
    } else {
      all_rows<1>(g, finish, panel);
    }
  }
}

}  // namespace

extern const WinogradRow winograd_w8a8_6x16_x86_avx2, winograd_w8a8_4x4_x86_avx2;
extern const GemmIntRow gemm_w8a8_6x16_x86_avx2;
constinit const GemmIntRow gemm_w8a8_6x16_x86_avx2{
    .isa = Isa::x86_avx2,
    .name = "gemm_w8a8_6x16_x86_avx2",
    .m_step = kRows,
    .n_step = kColumns,
    .k_step = kPair,
    .element_bytes = sizeof(std::int16_t),
    .packed_bytes = panel_bytes<kPair>,
    .pack = pack_panels<kPair>,
    .stage = widen,
    .run_staged = run_staged,
    .winograd = &winograd_w8a8_6x16_x86_avx2,
    .winograd_channels = 8,
    .winograd_large = &winograd_w8a8_4x4_x86_avx2,
};

}  // namespace ctk::kernels

#endif
