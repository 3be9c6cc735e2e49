// gemm_wg on ARM's dot products: sdot of codes (of 8 bits: lowered by 128) by digits, four k and four columns at once,
// unpacked from the panels (panels.h) in registers as they stream by. A tile is up to four lines (rows times digits) by
// 16 columns: 16 sums, and sixteen unpacked vectors for every 64 sdot.
#if defined(__aarch64__)

#include "kernels/gemm_wg/gemm_wg.h"

#include "kernels/gemm_wg/stage_arm_neon.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;  // of staged activations: a share of the second cache
constexpr std::size_t kLeastRows = 12, kMostRows = 60;

// Codes as 128-bit vectors, four a quad (panels.h).
struct Planes128 {
  using Vector = uint8x16_t;

  static Vector load(const char* at) { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(at)); }
  static Vector ones(const char* at, std::size_t part) {
    const Vector plane = load(at + part % 2 * sizeof(Vector));
    return part < 2 ? plane : vshrq_n_u8(plane, 1);
  }
  static Vector masked(Vector v, int mask) { return vandq_u8(v, vdupq_n_u8(static_cast<std::uint8_t>(mask))); }
  static Vector either(Vector a, Vector b) { return vorrq_u8(a, b); }

  template <int kBits>
  [[gnu::always_inline]] static void shift(Vector& v) {
    if constexpr (kBits > 0) v = vshlq_n_u8(v, kBits);
    if constexpr (kBits < 0) v = vshrq_n_u8(v, -kBits);
  }
};

// Column vector v of every line: codes by quad l of x.
template <std::size_t V>
inline void add_quads(int32x4_t (&dots)[V][4], std::size_t v, uint8x16_t codes, int8x16_t x) {
  const int8x16_t w = vreinterpretq_s8_u8(codes);
  dots[0][v] = vdotq_laneq_s32(dots[0][v], w, x, 0);
  if constexpr (V > 1) dots[1][v] = vdotq_laneq_s32(dots[1][v], w, x, 1);
  if constexpr (V > 2) dots[2][v] = vdotq_laneq_s32(dots[2][v], w, x, 2);
  if constexpr (V > 3) dots[3][v] = vdotq_laneq_s32(dots[3][v], w, x, 3);
}

// Quad I of a step; x: the step's quads.
template <int kBits, std::size_t V, int I>
[[gnu::always_inline]] inline void add_quad(int32x4_t (&dots)[V][4], const char* codes, const std::int8_t* x) {
  const int8x16_t quads = vld1q_s8(x + I * kLines * kQuad);
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) {
    uint8x16_t w;
    quad_codes<Planes128, kBits, I>(codes, v, w);
    if constexpr (lowered_by(kBits) != 0) w = veorq_u8(w, vdupq_n_u8(lowered_by(kBits)));
    add_quads<V>(dots, v, w, quads);
  }
}

// Where a group's sums start: the zero points' part.
template <int kBits, std::size_t V>
inline void start_group(int32x4_t (&dots)[V][4], const std::int32_t* corrections, const std::uint8_t* zero_points) {
  CTK_UNROLL
  for (std::size_t v = 0; v < 4; ++v) {
    int32x4_t zero = vdupq_n_s32(1);
    if (zero_points != nullptr) {
      std::uint32_t four;
      std::memcpy(&four, zero_points + 4 * v, sizeof(four));
      const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
      zero = vsubq_s32(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words))), vdupq_n_s32(lowered_by(kBits)));
    }
    CTK_UNROLL
    for (std::size_t l = 0; l < V; ++l) dots[l][v] = vmulq_n_s32(zero, corrections[l]);
  }
}

inline float32x4_t scales_at(const char* halves) {
  uint16x4_t bits;
  std::memcpy(&bits, halves, sizeof(bits));
  return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

inline void load_columns(const float* from, std::size_t columns, float32x4_t (&out)[4]) {
  float buffer[kColumns] = {};
  if (columns < kColumns) std::memcpy(buffer, from, columns * sizeof(float));
  for (std::size_t v = 0; v < 4; ++v) out[v] = vld1q_f32((columns < kColumns ? buffer : from) + 4 * v);
}

void finish(const GemmWg& g, std::size_t row, std::size_t column, std::size_t columns, float32x4_t (&y)[4]) {
  const EpilogueFloat& e = g.epilogue;
  float32x4_t residual[4];
  if (e.residual != nullptr) load_columns(e.residual + row * e.residual_stride + column, columns, residual);
  float buffer[kColumns];
  float* c = g.c + row * g.c_stride + column;
  float* to = columns < kColumns ? buffer : c;
  for (std::size_t v = 0; v < 4; ++v) {
    if (e.residual != nullptr) y[v] = vaddq_f32(y[v], residual[v]);
    vst1q_f32(to + 4 * v, clamp_real(y[v], vdupq_n_f32(e.low), vdupq_n_f32(e.high)));
  }
  if (columns < kColumns) std::memcpy(c, buffer, columns * sizeof(float));
}

// V / D rows, the first of them `row` of C, by 16 columns, of which `columns` exist.
template <int kBits, std::size_t V, std::size_t D>
void tile(const GemmWg& g, const PanelLayout& layout, const Staged& x, std::size_t row, std::size_t column,
          std::size_t columns) {
  const char* panel = static_cast<const char*>(g.packed) + column / kColumns * layout.bytes;
  float32x4_t out[V / D][4];
  for (std::size_t v = 0; v < 4; ++v) out[0][v] = vdupq_n_f32(0.0f);
  if (g.epilogue.bias != nullptr) load_columns(g.epilogue.bias + column, columns, out[0]);
  for (std::size_t r = 1; r < V / D; ++r) {
    for (std::size_t v = 0; v < 4; ++v) out[r][v] = out[0][v];
  }
  const bool is_whole = g.shape.sums_whole(D);
  const char* codes = panel + layout.codes;
  const std::uint8_t* zero_points = reinterpret_cast<const std::uint8_t*>(panel + layout.zero_points);
  const std::int8_t* quads = x.codes;
  for (std::size_t group = 0; group < layout.groups; ++group) {
    int32x4_t dots[V][4];
    start_group<kBits, V>(dots, x.corrections + group * kLines,
                          g.shape.is_affine ? zero_points + group * kColumns : nullptr);
    const std::size_t steps = smaller(layout.group_steps, layout.steps - group * layout.group_steps);
    for (std::size_t s = 0; s < steps; ++s, codes += step_bytes_of(kBits), quads += kQuads * kLines * kQuad) {
      add_quad<kBits, V, 0>(dots, codes, quads);
      add_quad<kBits, V, 1>(dots, codes, quads);
      add_quad<kBits, V, 2>(dots, codes, quads);
      add_quad<kBits, V, 3>(dots, codes, quads);
    }
    const char* scales = panel + group * kColumns * sizeof(std::uint16_t);
    CTK_UNROLL
    for (std::size_t v = 0; v < 4; ++v) {
      const float32x4_t scale = scales_at(scales + 4 * v * sizeof(std::uint16_t));
      CTK_UNROLL
      for (std::size_t l = 0; l < V; ++l) {
        float32x4_t& y = out[l / D][v];
        if constexpr (D == 2) {
          if (is_whole && l % D == 0) {
            dots[l + 1][v] = vaddq_s32(dots[l + 1][v], vshlq_n_s32(dots[l][v], 8));
            continue;
          }
        }
        y = vfmaq_f32(y, vcvtq_f32_s32(dots[l][v]), vmulq_n_f32(scale, x.scales[group * kLines + l]));
      }
    }
  }
  for (std::size_t r = 0; r < V / D; ++r) finish(g, row + r, column, columns, out[r]);
}

template <int kBits, std::size_t D>
void run_digits(const GemmWg& g, const void* staged, std::size_t m_begin, std::size_t rows, std::size_t n_begin,
                std::size_t n_end, void*) {
  const PanelLayout layout = layout_of(g.shape);
  for (std::size_t column = n_begin; column < n_end; column += kColumns) {
    const std::size_t columns = smaller(kColumns, n_end - column);
    for (std::size_t m = 0; m < rows; m += tile_rows(D)) {
      const Staged x = staged_tile(layout, staged, m / tile_rows(D));
      const std::size_t height = smaller(tile_rows(D), rows - m), row = m_begin + m;
      if (height == 1) tile<kBits, D, D>(g, layout, x, row, column, columns);
      if constexpr (D <= 2) {
        if (height == 2) tile<kBits, 2 * D, D>(g, layout, x, row, column, columns);
      }
      if constexpr (D == 1) {
        if (height == 3) tile<kBits, 3, D>(g, layout, x, row, column, columns);
        if (height == 4) tile<kBits, 4, D>(g, layout, x, row, column, columns);
      }
    }
  }
}

std::size_t block_rows(const WgShape& s, int digits) {
  const std::size_t rows = tile_rows(static_cast<std::size_t>(digits)), bytes = tile_bytes(layout_of(s));
  const std::size_t fitting = bytes == 0 ? kMostRows : kBlockBytes / bytes * rows;
  return fitting < kLeastRows ? kLeastRows : smaller(fitting, kMostRows);
}

std::size_t staged_bytes(const WgShape& s, int digits, std::size_t rows) {
  const std::size_t height = tile_rows(static_cast<std::size_t>(digits));
  return (rows + height - 1) / height * tile_bytes(layout_of(s));
}

void stage(const GemmWg& g, const float* a, std::size_t, std::size_t begin, std::size_t end, void* staged) {
  if (g.digits == 1) stage_rows<1>(g, a, begin, end, staged);
  if (g.digits == 2) stage_rows<2>(g, a, begin, end, staged);
  if (g.digits == 3) stage_rows<3>(g, a, begin, end, staged);
}

std::size_t scratch_bytes(const WgShape&, int) {
  return 0;
}

}  // namespace
}  // namespace ctk::kernels

#include "kernels/gemm_wg/widths.h"

namespace ctk::kernels {

extern const GemmWgRow gemm_wg_4x16_arm_neondot;
constinit const GemmWgRow gemm_wg_4x16_arm_neondot = row_of(Isa::arm_neondot, "gemm_wg_4x16_arm_neondot", kColumns);

}  // namespace ctk::kernels

#endif
