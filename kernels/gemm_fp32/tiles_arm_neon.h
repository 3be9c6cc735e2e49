// The tiles of float products for ARM's vectors of four floats: up to 6 rows by 16 columns, 24 sums of the 32
// registers. Internal linkage. `Form` says how weights are held: its `Stored`, widen() of 4 of them to floats, narrow()
// of one float. Packed weights: panels.h.
//
// Blocking. Rows are taken in blocks, and a long K is cut into chunks whose part of a panel stays in the first cache
// while all tiles of the block pass over it; between chunks the sums are stored and loaded again as they are, which
// changes no bit.
#pragma once

#include "kernels/epilogue_arm_neon.h"
#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_fp32/panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6, kVectors = 4;
constexpr std::size_t kBlockRows = 48;
constexpr std::size_t kChunkK = 320;  // 20 kB of a panel

// Where the rows of a product's A lie: run s of row m, `length` floats.
struct Runs {
  const GemmFloat& g;
  std::size_t length, count;

  explicit Runs(const GemmFloat& product)
      : g(product), length(g.segments != nullptr ? g.segment_length : g.k), count(length == 0 ? 0 : g.k / length) {}
  const float* at(std::size_t m, std::size_t s) const {
    return g.segments != nullptr ? g.segments[m * count + s] : g.a + m * g.a_stride;
  }
};

// Part of a row: runs [run_begin, run_end), of each the floats [begin, begin + length).
struct Chunk {
  std::size_t run_begin, run_end, begin, length;
};

// sums[R][16] of rows row..row+R-1 += the chunk's part. b: of the panel, at the chunk.
template <class Form, std::size_t R>
void add_chunk(const Runs& runs, const Chunk& chunk, std::size_t row, const typename Form::Stored* b, float* sums) {
  float32x4_t sum[R][kVectors];
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = vld1q_f32(sums + r * kPanel + 4 * v);
  }
  for (std::size_t s = chunk.run_begin; s < chunk.run_end; ++s) {
    const float* a[R];
    CTK_UNROLL
    for (std::size_t r = 0; r < R; ++r) a[r] = runs.at(row + r, s) + chunk.begin;
    for (std::size_t i = 0; i < chunk.length; ++i, b += kPanel) {
      float32x4_t w[kVectors];
      CTK_UNROLL
      for (std::size_t v = 0; v < kVectors; ++v) w[v] = Form::widen(b + 4 * v);
      CTK_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        CTK_UNROLL
        for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = vfmaq_n_f32(sum[r][v], w[v], a[r][i]);
      }
    }
  }
  CTK_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    CTK_UNROLL
    for (std::size_t v = 0; v < kVectors; ++v) vst1q_f32(sums + r * kPanel + 4 * v, sum[r][v]);
  }
}

template <class Form>
constexpr void (*kAddChunk[kRows + 1])(const Runs&, const Chunk&, std::size_t, const typename Form::Stored*, float*) = {
    nullptr,
    add_chunk<Form, 1>,
    add_chunk<Form, 2>,
    add_chunk<Form, 3>,
    add_chunk<Form, 4>,
    add_chunk<Form, 5>,
    add_chunk<Form, 6>};

// Residual, clamp and store of `columns` (1..16) columns.
inline void finish(const GemmFloat& g, std::size_t row, std::size_t column, std::size_t columns, const float* sums) {
  const EpilogueFloat& e = g.epilogue;
  float* c = g.c + row * g.c_stride + column;
  const float* residual = e.residual != nullptr ? e.residual + row * e.residual_stride + column : nullptr;
  float buffer[kPanel] = {};
  if (columns < kPanel && residual != nullptr) {
    std::memcpy(buffer, residual, columns * sizeof(float));
    residual = buffer;
  }
  float* to = columns < kPanel ? buffer : c;
  for (std::size_t v = 0; v < kVectors; ++v) {
    float32x4_t y = vld1q_f32(sums + 4 * v);
    if (residual != nullptr) y = vaddq_f32(y, vld1q_f32(residual + 4 * v));
    vst1q_f32(to + 4 * v, clamp_real(y, vdupq_n_f32(e.low), vdupq_n_f32(e.high)));
  }
  if (columns < kPanel) std::memcpy(c, buffer, columns * sizeof(float));
}

// 16 columns, `columns` of which exist, of rows [m_begin, m_begin + rows), at most kBlockRows.
template <class Form>
void run_panel(const Runs& runs, std::size_t m_begin, std::size_t rows, std::size_t column, std::size_t columns) {
  const GemmFloat& g = runs.g;
  float sums[kBlockRows * kPanel];
  float bias[kPanel] = {};
  if (g.epilogue.bias != nullptr) std::memcpy(bias, g.epilogue.bias + column, columns * sizeof(float));
  for (std::size_t r = 0; r < rows; ++r) std::memcpy(sums + r * kPanel, bias, sizeof(bias));
  const auto* panel = static_cast<const typename Form::Stored*>(g.packed) + column * g.k;
  // Chunks are whole runs, or parts of the only run. Tiles are as even as can be: 8 rows are 4 + 4, not 6 + 2.
  const std::size_t chunks = (g.k + kChunkK - 1) / kChunkK, tiles = (rows + kRows - 1) / kRows;
  const std::size_t whole = runs.count == 1 ? runs.length : runs.count;
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::size_t begin = whole * i / chunks, end = whole * (i + 1) / chunks;
    const Chunk chunk = runs.count == 1 ? Chunk{0, 1, begin, end - begin} : Chunk{begin, end, 0, runs.length};
    const auto* b = panel + begin * (runs.count == 1 ? 1 : runs.length) * kPanel;
    for (std::size_t t = 0; t < tiles; ++t) {
      const std::size_t first = rows * t / tiles, height = rows * (t + 1) / tiles - first;
      kAddChunk<Form>[height](runs, chunk, m_begin + first, b, sums + first * kPanel);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) finish(g, m_begin + r, column, columns, sums + r * kPanel);
}

template <class Form>
void run(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void*) {
  const Runs runs(g);
  const std::size_t blocks = (g.m + kBlockRows - 1) / kBlockRows;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t first = g.m * i / blocks, rows = g.m * (i + 1) / blocks - first;
    for (std::size_t column = n_begin; column < n_end; column += kPanel) {
      run_panel<Form>(runs, first, rows, column, n_end - column < kPanel ? n_end - column : kPanel);
    }
  }
}

}  // namespace
}  // namespace ctk::kernels
