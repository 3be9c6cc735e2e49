// gemm_fp32 for AVX2 and FMA: register tiles of up to 6 rows by 16 columns, all of K in one go.
//
// Packed weights: panels of 16 columns, [ceil(n / 16)][k][16], the last one filled up with zeros. A tile keeps its sums
// in registers and walks K once: two weight vectors a step, each multiplied with one broadcast element per row. Six
// rows by two vectors are 12 independent sums, which hides the multiply-add's latency. Where rows are fewer, more
// panels are taken at once to keep the same number of sums in flight. Rows are taken in blocks whose A part stays in
// the second cache while all panels pass over it.
#include "kernels/gemm_fp32/gemm_fp32.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

namespace ctk::kernels {
namespace {

constexpr std::size_t kRows = 6;
constexpr std::size_t kPanel = 16;
constexpr std::size_t kBlockBytes = 192 * 1024;  // of A a row block may hold; the second cache has 256 kB or more

std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return (n + kPanel - 1) / kPanel * kPanel * k * sizeof(float);
}

void pack(const float* w, std::size_t n, std::size_t k, void* packed) {
  float* out = static_cast<float*>(packed);
  for (std::size_t panel = 0; panel < n; panel += kPanel) {
    const std::size_t columns = n - panel < kPanel ? n - panel : kPanel;
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t c = 0; c < kPanel; ++c) *out++ = c < columns ? w[(panel + c) * k + i] : 0.0f;
    }
  }
}

std::size_t scratch_bytes(std::size_t) {
  return 0;
}

struct Tile {
  const float* const* a;  // run s of row r at a[r * runs + s]
  std::size_t runs, length;
  const float* b;          // first panel
  std::size_t panel_size;  // floats from one panel to the next
  const float* bias;       // of the first column, or null
  const float* residual;   // of the first element, or null
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

template <int R, int V>
void compute(const Tile& t) {
  __m256 sum[R][V];
  {
    __m256 bias[V];
    for (int v = 0; v < V; ++v) bias[v] = _mm256_setzero_ps();
    if (t.bias != nullptr) load_columns<V>(t.bias, t.columns, bias);
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sum[r][v] = bias[v];
    }
  }
  const float* b = t.b;
  for (std::size_t s = 0; s < t.runs; ++s) {
    const float* a[R];
    for (int r = 0; r < R; ++r) a[r] = t.a[static_cast<std::size_t>(r) * t.runs + s];
    for (std::size_t i = 0; i < t.length; ++i, b += kPanel) {
      __m256 w[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        w[v] = _mm256_loadu_ps(b + static_cast<std::size_t>(v / 2) * t.panel_size + v % 2 * 8);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256 x = _mm256_broadcast_ss(a[r] + i);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sum[r][v] = _mm256_fmadd_ps(x, w[v], sum[r][v]);
      }
    }
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

using Compute = void (*)(const Tile&);
// By number of rows, for half a panel, one, two and four panels; null where the sums would not fit into registers.
constexpr Compute kHalf[kRows + 1] = {nullptr,       compute<1, 1>, compute<2, 1>, compute<3, 1>,
                                      compute<4, 1>, compute<5, 1>, compute<6, 1>};
constexpr Compute kOne[kRows + 1] = {nullptr,       compute<1, 2>, compute<2, 2>, compute<3, 2>,
                                     compute<4, 2>, compute<5, 2>, compute<6, 2>};
constexpr Compute kTwo[kRows + 1] = {nullptr, compute<1, 4>, compute<2, 4>, compute<3, 4>, nullptr, nullptr, nullptr};
constexpr Compute kFour[kRows + 1] = {nullptr, compute<1, 8>, nullptr, nullptr, nullptr, nullptr, nullptr};

// All columns [n_begin, n_end) of rows [m_begin, m_end).
void run_block(const GemmFloat& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin;
  const std::size_t tiles = (rows + kRows - 1) / kRows;
  Tile t{};
  t.length = g.segments != nullptr ? g.segment_length : g.k;
  t.runs = t.length == 0 ? 0 : g.k / t.length;
  t.panel_size = kPanel * g.k;
  t.low = g.epilogue.low;
  t.high = g.epilogue.high;
  t.c_stride = g.c_stride;
  t.residual_stride = g.epilogue.residual_stride;
  const std::size_t most = rows <= 1 ? 64 : rows <= 3 ? 32 : 16;
  for (std::size_t n = n_begin; n < n_end;) {
    const std::size_t left = n_end - n;
    const std::size_t step = left >= most ? most : left >= 32 && most >= 32 ? 32 : 16;
    const Compute* table = step == 64 ? kFour : step == 32 ? kTwo : left <= 8 ? kHalf : kOne;
    t.columns = left < step ? left : step;
    t.b = static_cast<const float*>(g.packed) + n / kPanel * t.panel_size;
    t.bias = g.epilogue.bias != nullptr ? g.epilogue.bias + n : nullptr;
    // Tiles as even as can be: 8 rows are 4 + 4, not 6 + 2.
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      const std::size_t m = m_begin + rows * tile / tiles;
      const std::size_t height = m_begin + rows * (tile + 1) / tiles - m;
      const float* direct[kRows];
      if (g.segments != nullptr) {
        t.a = g.segments + m * t.runs;
      } else {
        for (std::size_t r = 0; r < height; ++r) direct[r] = g.a + (m + r) * g.a_stride;
        t.a = direct;
      }
      t.c = g.c + m * g.c_stride + n;
      t.residual = g.epilogue.residual != nullptr ? g.epilogue.residual + m * t.residual_stride + n : nullptr;
      table[height](t);
    }
    n += step;
  }
}

void run(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void*) {
  if (g.m == 0 || n_begin >= n_end) return;
  std::size_t block = g.k == 0 ? g.m : kBlockBytes / (g.k * sizeof(float));
  if (block < 8 * kRows) block = 8 * kRows;
  const std::size_t blocks = (g.m + block - 1) / block;
  for (std::size_t i = 0; i < blocks; ++i) {
    run_block(g, g.m * i / blocks, g.m * (i + 1) / blocks, n_begin, n_end);
  }
}

}  // namespace

const GemmFloatRow gemm_fp32_6x16_x86_avx2 = {
    Isa::x86_avx2, "gemm_fp32_6x16_x86_avx2", kRows, kPanel, packed_bytes, pack, scratch_bytes, run};

}  // namespace ctk::kernels

#endif
