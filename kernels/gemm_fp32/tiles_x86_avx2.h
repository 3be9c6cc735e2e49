// The tiles of float products for AVX2 and FMA: up to 6 rows by 16 columns in registers. Sources with AVX2 only;
// internal linkage. `Form` says how weights are held: its `Stored`, widen() of 8 of them to floats, narrow() of one
// float.
//
// Packed weights: panels.h. A tile keeps its sums
// in registers and walks K: two weight vectors a step, each multiplied with one broadcast element per row. Six rows by
// two vectors are 12 independent sums, which hides the multiply-add's latency. Where rows are fewer, more panels are
// taken at once to keep about as many sums in flight; 24 columns at the end go as 4 rows by three vectors.
//
// Blocking. Rows are taken in blocks whose part of A and C stays in the second cache while all panels pass over it. A
// long K is cut into chunks whose part of the panel stays in the first cache while all tiles of the block pass over it;
// between chunks the sums are stored and loaded again as they are, which changes no bit.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_fp32/panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6;
constexpr std::size_t kBlockBytes = 192 * 1024;  // of A and C a row block may hold; the second cache has 256 kB or more
constexpr std::size_t kWholeK = 384;             // up to here K is not cut: 24 kB of a panel
constexpr std::size_t kChunkK = 320;
constexpr std::size_t kChunkedRows = 96;  // rows of a block when K is cut: their sums are kept on the stack
constexpr std::size_t kMostColumns = 24;  // of a tile with more than three rows

struct Tile {
  const float* const* a;           // run s of row r at a[r * runs + s]
  std::size_t runs;                // of a row, over all of K
  std::size_t run_begin, run_end;  // this chunk's runs,
  std::size_t begin, length;       // and which part of each
  const void* b;                   // first panel, at this chunk
  std::size_t panel_size;          // weights from one panel to the next
  float* sums;                     // [rows][8 V] between chunks
  bool is_first, is_last;          // chunk
  const float* bias;               // of the first column, or null
  const float* residual;           // of the first element, or null
  std::size_t residual_stride;
  float low, high;
  float* c;
  std::size_t c_stride;
  std::size_t columns;  // that exist, 1 .. 8 V
};

// V vectors of 8 columns starting at `from`, of which only t.columns may be touched.
template <int V>
inline void load_columns(const float* from, std::size_t columns, __m256 (&out)[V]) {
  if (columns == 8 * V) {
    for (int v = 0; v < V; ++v) out[v] = _mm256_loadu_ps(from + 8 * v);
    return;
  }
  alignas(32) float buffer[8 * V] = {};
  std::memcpy(buffer, from, columns * sizeof(float));
  for (int v = 0; v < V; ++v) out[v] = _mm256_load_ps(buffer + 8 * v);
}

template <int V>
inline void store_columns(float* to, std::size_t columns, const __m256 (&values)[V]) {
  if (columns == 8 * V) {
    for (int v = 0; v < V; ++v) _mm256_storeu_ps(to + 8 * v, values[v]);
    return;
  }
  alignas(32) float buffer[8 * V];
  for (int v = 0; v < V; ++v) _mm256_store_ps(buffer + 8 * v, values[v]);
  std::memcpy(to, buffer, columns * sizeof(float));
}

template <class Form, int R, int V>
void compute(const Tile& t) {
  __m256 sum[R][V];
  if (t.is_first) {
    __m256 bias[V];
    for (int v = 0; v < V; ++v) bias[v] = _mm256_setzero_ps();
    if (t.bias != nullptr) load_columns<V>(t.bias, t.columns, bias);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sum[r][v] = bias[v];
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sum[r][v] = _mm256_loadu_ps(t.sums + (r * V + v) * 8);
    }
  }
  const auto* b = static_cast<const typename Form::Stored*>(t.b);
  for (std::size_t s = t.run_begin; s < t.run_end; ++s) {
    const float* a[R];
    for (int r = 0; r < R; ++r) a[r] = t.a[static_cast<std::size_t>(r) * t.runs + s] + t.begin;
    for (std::size_t i = 0; i < t.length; ++i, b += kPanel) {
      __m256 w[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) w[v] = Form::widen(b + static_cast<std::size_t>(v / 2) * t.panel_size + v % 2 * 8);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_broadcast_ss(a[r] + i);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[r][v] = _mm256_fmadd_ps(x, w[v], sum[r][v]);
      }
    }
  }
  if (!t.is_last) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) _mm256_storeu_ps(t.sums + (r * V + v) * 8, sum[r][v]);
    }
    return;
  }
  const __m256 low = _mm256_set1_ps(t.low), high = _mm256_set1_ps(t.high);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if (t.residual != nullptr) {
      __m256 residual[V];
      load_columns<V>(t.residual + static_cast<std::size_t>(r) * t.residual_stride, t.columns, residual);
      for (int v = 0; v < V; ++v) sum[r][v] = _mm256_add_ps(sum[r][v], residual[v]);
    }
    // The limit first: min and max return their second operand when one is NaN.
    for (int v = 0; v < V; ++v) sum[r][v] = _mm256_min_ps(high, _mm256_max_ps(low, sum[r][v]));
    store_columns<V>(t.c + static_cast<std::size_t>(r) * t.c_stride, t.columns, sum[r]);
  }
}

// One width of tile: how many rows it takes at most, and the function for each number of rows.
struct Width {
  std::size_t columns, most_rows;
  void (*compute[kRows + 1])(const Tile&);
};
template <class Form>
constexpr Width kHalf = {8,
                         6,
                         {nullptr, compute<Form, 1, 1>, compute<Form, 2, 1>, compute<Form, 3, 1>, compute<Form, 4, 1>,
                          compute<Form, 5, 1>, compute<Form, 6, 1>}};
template <class Form>
constexpr Width kOne = {16,
                        6,
                        {nullptr, compute<Form, 1, 2>, compute<Form, 2, 2>, compute<Form, 3, 2>, compute<Form, 4, 2>,
                         compute<Form, 5, 2>, compute<Form, 6, 2>}};
template <class Form>
constexpr Width kOneAndHalf = {
    24, 4, {nullptr, compute<Form, 1, 3>, compute<Form, 2, 3>, compute<Form, 3, 3>, compute<Form, 4, 3>}};
template <class Form>
constexpr Width kTwo = {32, 3, {nullptr, compute<Form, 1, 4>, compute<Form, 2, 4>, compute<Form, 3, 4>}};
template <class Form>
constexpr Width kFour = {64, 1, {nullptr, compute<Form, 1, 8>}};

template <class Form>
const Width& width_for(std::size_t rows, std::size_t columns) {
  if (columns <= 8) return kHalf<Form>;
  if (columns > 16 && columns <= 24) return kOneAndHalf<Form>;
  if (rows == 1 && columns >= 64) return kFour<Form>;
  if (rows <= 3 && columns >= 32) return kTwo<Form>;
  return kOne<Form>;
}

// All columns [n_begin, n_end) of rows [m_begin, m_end); with K cut into chunks the rows are at most kChunkedRows.
template <class Form>
void run_block(const GemmFloat& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end,
               std::size_t chunks) {
  alignas(32) float sums[kChunkedRows * kMostColumns];
  const std::size_t rows = m_end - m_begin;
  const std::size_t length = g.segments != nullptr ? g.segment_length : g.k;
  const std::size_t runs = length == 0 ? 0 : g.k / length;
  // Chunks are whole runs, or parts of the only run.
  const std::size_t step = runs == 1 ? (length + chunks - 1) / chunks : (runs + chunks - 1) / chunks;
  const std::size_t end = runs == 1 ? length : runs;
  Tile t{};
  t.runs = runs;
  t.run_end = runs;
  t.length = length;
  t.panel_size = kPanel * g.k;
  t.low = g.epilogue.low;
  t.high = g.epilogue.high;
  t.c_stride = g.c_stride;
  t.residual_stride = g.epilogue.residual_stride;
  for (std::size_t n = n_begin; n < n_end;) {
    const Width& width = width_for<Form>(rows, n_end - n);
    const std::size_t tiles = (rows + width.most_rows - 1) / width.most_rows;
    t.columns = n_end - n < width.columns ? n_end - n : width.columns;
    t.bias = g.epilogue.bias != nullptr ? g.epilogue.bias + n : nullptr;
    const auto* panel = static_cast<const typename Form::Stored*>(g.packed) + n / kPanel * t.panel_size;
    std::size_t chunk = 0;
    do {
      const std::size_t chunk_end = end - chunk < step ? end : chunk + step;
      if (runs == 1) {
        t.begin = chunk;
        t.length = chunk_end - chunk;
        t.b = panel + chunk * kPanel;
      } else {
        t.run_begin = chunk;
        t.run_end = chunk_end;
        t.b = panel + chunk * length * kPanel;
      }
      t.is_first = chunk == 0;
      t.is_last = chunk_end == end;
      // Tiles as even as can be: 8 rows are 4 + 4, not 6 + 2.
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const std::size_t first = rows * tile / tiles, height = rows * (tile + 1) / tiles - first;
        const std::size_t m = m_begin + first;
        const float* direct[kRows];
        if (g.segments != nullptr) {
          t.a = g.segments + m * runs;
        } else {
          for (std::size_t r = 0; r < height; ++r) direct[r] = g.a + (m + r) * g.a_stride;
          t.a = direct;
        }
        t.c = g.c + m * g.c_stride + n;
        t.residual = g.epilogue.residual != nullptr ? g.epilogue.residual + m * t.residual_stride + n : nullptr;
        t.sums = sums + first * width.columns;
        width.compute[height](t);
      }
      chunk = chunk_end;
    } while (chunk < end);
    n += width.columns;
  }
}

template <class Form>
void run(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void*) {
  if (g.m == 0 || n_begin >= n_end) return;
  // One tile reads each weight once anyway: nothing to keep in the cache by cutting K.
  const std::size_t chunks = g.k <= kWholeK || g.m <= kRows ? 1 : (g.k + kChunkK - 1) / kChunkK;
  std::size_t block = kBlockBytes / ((g.k + n_end - n_begin) * sizeof(float));
  if (block < 8 * kRows) block = 8 * kRows;
  if (chunks > 1 && block > kChunkedRows) block = kChunkedRows;
  const std::size_t blocks = (g.m + block - 1) / block;
  for (std::size_t i = 0; i < blocks; ++i) {
    run_block<Form>(g, g.m * i / blocks, g.m * (i + 1) / blocks, n_begin, n_end, chunks);
  }
}

}  // namespace
}  // namespace ctk::kernels
