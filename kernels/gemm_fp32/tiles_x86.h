// The tiles of float products for x86, whatever the width of a vector. The source that includes this gives before it
// `Vector`, kLanes and what is done to vectors (vectors_x86_avx2.h, vectors_x86_avx512.h); `Form` says how weights are
// held: its `Stored`, widen() of kLanes of them to floats, narrow() of one float. Internal linkage.
//
// Packed weights: panels.h. A tile keeps its sums in registers and walks K: a few weight vectors a step, each
// multiplied with one broadcast element per row. Twelve and more independent sums hide the multiply-add's latency.
// Where rows are fewer, more panels are taken at once to keep about as many sums in flight.
//
// Blocking. Rows are taken in blocks whose part of A and C stays in the second cache while all panels pass over it. A
// long K is cut into chunks whose part of the panels stays in the first cache while all tiles of the block pass over
// it; between chunks the sums are stored and loaded again as they are, which changes no bit.
#pragma once

#include <cstring>

#include "kernels/gemm_fp32/gemm_fp32.h"
#include "kernels/gemm_fp32/panels.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kBlockBytes = 192 * 1024;  // of A and C a row block may hold; the second cache has 256 kB or more
constexpr std::size_t kWholeK = 384;             // up to here K is not cut: 24 kB of a panel
constexpr std::size_t kPanelVectors = kPanel / kLanes;

// Weights held as what they are.
struct Whole {
  using Stored = float;
  static Vector widen(const float* from) { return load(from); }
  static float narrow(float value) { return value; }
};

struct Tile {
  const float* const* a;           // run s of row r at a[r * runs + s]
  std::size_t runs;                // of a row, over all of K
  std::size_t run_begin, run_end;  // this chunk's runs,
  std::size_t begin, length;       // and which part of each
  const void* b;                   // first panel, at this chunk
  std::size_t panel_size;          // weights from one panel to the next
  float* sums;                     // [rows][kLanes V] between chunks
  bool is_first, is_last;          // chunk
  const float* bias;               // of the first column, or null
  const float* residual;           // of the first element, or null
  std::size_t residual_stride;
  float low, high;
  float* c;
  std::size_t c_stride;
  std::size_t columns;  // that exist, 1 .. kLanes V
};

// V vectors of columns starting at `from`, of which only t.columns may be touched.
template <std::size_t V>
inline void load_columns(const float* from, std::size_t columns, Vector (&out)[V]) {
  if (columns == kLanes * V) {
    for (std::size_t v = 0; v < V; ++v) out[v] = load(from + kLanes * v);
    return;
  }
  alignas(64) float buffer[kLanes * V] = {};
  std::memcpy(buffer, from, columns * sizeof(float));
  for (std::size_t v = 0; v < V; ++v) out[v] = load(buffer + kLanes * v);
}

template <std::size_t V>
inline void store_columns(float* to, std::size_t columns, const Vector (&values)[V]) {
  if (columns == kLanes * V) {
    for (std::size_t v = 0; v < V; ++v) store(to + kLanes * v, values[v]);
    return;
  }
  alignas(64) float buffer[kLanes * V];
  for (std::size_t v = 0; v < V; ++v) store(buffer + kLanes * v, values[v]);
  std::memcpy(to, buffer, columns * sizeof(float));
}

template <class Form, std::size_t R, std::size_t V>
void compute(const Tile& t) {
  Vector sum[R][V];
  if (t.is_first) {
    Vector bias[V];
    for (std::size_t v = 0; v < V; ++v) bias[v] = every(0.0f);
    if (t.bias != nullptr) load_columns<V>(t.bias, t.columns, bias);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V; ++v) sum[r][v] = bias[v];
    }
  } else {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V; ++v) sum[r][v] = load(t.sums + (r * V + v) * kLanes);
    }
  }
  const auto* b = static_cast<const typename Form::Stored*>(t.b);
  for (std::size_t s = t.run_begin; s < t.run_end; ++s) {
    const float* a[R];
    for (std::size_t r = 0; r < R; ++r) a[r] = t.a[r * t.runs + s] + t.begin;
    for (std::size_t i = 0; i < t.length; ++i, b += kPanel) {
      Vector w[V];
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v)
        w[v] = Form::widen(b + v / kPanelVectors * t.panel_size + v % kPanelVectors * kLanes);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < R; ++r) {
        const Vector x = every(a[r][i]);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < V; ++v) sum[r][v] = fused(x, w[v], sum[r][v]);
      }
    }
  }
  if (!t.is_last) {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V; ++v) store(t.sums + (r * V + v) * kLanes, sum[r][v]);
    }
    return;
  }
  const Vector low = every(t.low), high = every(t.high);
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    if (t.residual != nullptr) {
      Vector residual[V];
      load_columns<V>(t.residual + r * t.residual_stride, t.columns, residual);
      for (std::size_t v = 0; v < V; ++v) sum[r][v] = sum_of(sum[r][v], residual[v]);
    }
    // The limit first: min and max return their second operand when one is NaN.
    for (std::size_t v = 0; v < V; ++v) sum[r][v] = least(high, most(low, sum[r][v]));
    store_columns<V>(t.c + r * t.c_stride, t.columns, sum[r]);
  }
}

// One width of tile: how many rows it takes at most, and the function for each number of rows.
struct Width {
  std::size_t columns, most_rows;
  void (*compute[kRows + 1])(const Tile&);
};
// The width for a block of so many rows where so many columns are left; by the source.
template <class Form>
const Width& width_for(std::size_t rows, std::size_t columns);

// All columns [n_begin, n_end) of rows [m_begin, m_end); with K cut into chunks the rows are at most kChunkedRows.
template <class Form>
void run_block(const GemmFloat& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end,
               std::size_t chunks) {
  alignas(64) float sums[kChunkedRows * kMostColumns];
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
