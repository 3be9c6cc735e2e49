// gemm_w8a8 on ARM's dot products: sdot adds four products of int8 and int8 to an int32 sum, exactly. Serves gemm_w4a8
// too. Activations stay uint8 in memory and lose 128 in registers (one bit turned over); what that takes from a column,
// 128 times the sum of its weights, is packed with the weights and added to the bias.
//
// Packed weights: [n / 16] panels, each int32 [16] (128 * sum of the column's weights, modulo 2^32), then int8
// [k / 4][16 columns][4 k]; columns past n and k past the end are zero.
#if defined(__aarch64__)

#include "kernels/epilogue_arm_neon.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 4, kColumns = 16, kQuad = 4, kQuadBytes = kColumns * kQuad;

std::size_t panel_bytes(std::size_t k) {
  return kColumns * sizeof(std::int32_t) + (k + kQuad - 1) / kQuad * kQuadBytes;
}

std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return (n + kColumns - 1) / kColumns * panel_bytes(k);
}

void pack(const std::int8_t* w, std::size_t n, std::size_t k, void* packed) {
  std::int8_t* out = static_cast<std::int8_t*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kColumns) {
    std::uint32_t sums[kColumns] = {};
    std::int8_t* start = out;
    out += sizeof(sums);
    for (std::size_t quad = 0; quad < k; quad += kQuad) {
      for (std::size_t c = 0; c < kColumns; ++c) {
        for (std::size_t j = quad; j < quad + kQuad; ++j) {
          const std::int8_t code = panel + c < n && j < k ? w[(panel + c) * k + j] : std::int8_t{0};
          sums[c] += static_cast<std::uint32_t>(code * 128);
          *out++ = code;
        }
      }
    }
    std::memcpy(start, sums, sizeof(sums));
  }
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

// 16 columns of the product: what the tiles of one panel share.
struct Panel {
  const std::int8_t* weights;
  std::size_t column, columns;
  int32x4_t bias[4];
  float32x4_t multiplier[4];
};

inline int8x16_t less_128(uint8x16_t x) {
  return vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(0x80)));
}

// acc[i] += quad kLane of x[i] times four k of 16 columns.
template <int kLane, std::size_t M>
inline void add_quad(int32x4_t (&acc)[M][4], const int8x16_t (&x)[M], const std::int8_t* w) {
  int8x16_t weights[4];
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) weights[v] = vld1q_s8(w + 16 * v);
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    CTK_UNROLL
    for (std::size_t v = 0; v < 4; ++v) acc[i][v] = vdotq_laneq_s32(acc[i][v], weights[v], x[i], kLane);
  }
}

// Rows row..row+M-1.
template <std::size_t M>
void tile(const GemmStaged& g, const Finish16& finish, const Panel& panel, std::size_t row) {
  int32x4_t acc[M][4];
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    CTK_UNROLL
    for (std::size_t v = 0; v < 4; ++v) acc[i][v] = panel.bias[v];
  }
  const std::int8_t* w = panel.weights;
  for (std::size_t s = 0; s < g.segments; ++s) {
    const std::uint8_t* a[M];
    CTK_UNROLL
    for (std::size_t i = 0; i < M; ++i) a[i] = static_cast<const std::uint8_t*>(g.rows[row + i]) + g.offsets[s];
    int8x16_t x[M];
    std::size_t k = 0;
    for (; k + 4 * kQuad <= g.segment_k; k += 4 * kQuad, w += 4 * kQuadBytes) {
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) x[i] = less_128(vld1q_u8(a[i] + k));
      add_quad<0>(acc, x, w);
      add_quad<1>(acc, x, w + kQuadBytes);
      add_quad<2>(acc, x, w + 2 * kQuadBytes);
      add_quad<3>(acc, x, w + 3 * kQuadBytes);
    }
    for (; k < g.segment_k; k += kQuad, w += kQuadBytes) {
      CTK_UNROLL
      for (std::size_t i = 0; i < M; ++i) {
        std::uint32_t quad;
        std::memcpy(&quad, a[i] + k, sizeof(quad));
        x[i] = less_128(vreinterpretq_u8_u32(vdupq_n_u32(quad)));
      }
      add_quad<0>(acc, x, w);
    }
  }
  CTK_UNROLL
  for (std::size_t i = 0; i < M; ++i) {
    store16(finish, g.epilogue, acc[i], panel.multiplier, row + i, panel.column, panel.columns, g.c, g.c_stride);
  }
}

Panel panel_at(const GemmStaged& g, std::size_t column, std::size_t n_end) {
  Panel panel;
  panel.column = column;
  panel.columns = n_end - column < kColumns ? n_end - column : kColumns;
  std::int32_t bias[kColumns] = {};
  float multiplier[kColumns] = {};
  std::memcpy(bias, g.epilogue.bias + column, panel.columns * sizeof(bias[0]));
  std::memcpy(multiplier, g.epilogue.multiplier + column, panel.columns * sizeof(multiplier[0]));
  const std::int8_t* start =
      static_cast<const std::int8_t*>(g.packed) + column / kColumns * panel_bytes(g.segments * g.segment_k);
  std::int32_t shift[kColumns];
  std::memcpy(shift, start, sizeof(shift));
  panel.weights = start + sizeof(shift);
  for (std::size_t v = 0; v < 4; ++v) {
    panel.bias[v] = vaddq_s32(vld1q_s32(bias + 4 * v), vld1q_s32(shift + 4 * v));
    panel.multiplier[v] = vld1q_f32(multiplier + 4 * v);
  }
  return panel;
}

void run_staged(const GemmStaged& g, std::size_t n_begin, std::size_t n_end) {
  const Finish16 finish = finish16_of(g.epilogue);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const Panel panel = panel_at(g, column, n_end);
    std::size_t row = 0;
    for (; row + kRows <= g.m; row += kRows) tile<kRows>(g, finish, panel, row);
    if (g.m - row == 3) tile<3>(g, finish, panel, row);
    if (g.m - row == 2) tile<2>(g, finish, panel, row);
    if (g.m - row == 1) tile<1>(g, finish, panel, row);
  }
}

}  // namespace

extern const GemmIntRow gemm_w8a8_4x16_arm_neondot;
constinit const GemmIntRow gemm_w8a8_4x16_arm_neondot{
    .isa = Isa::arm_neondot,
    .name = "gemm_w8a8_4x16_arm_neondot",
    .m_step = kRows,
    .n_step = kColumns,
    .k_step = kQuad,
    .element_bytes = 1,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .stage = stage,
    .run_staged = run_staged,
};

}  // namespace ctk::kernels

#endif
