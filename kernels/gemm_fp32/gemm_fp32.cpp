// gemm_fp32: scalar reference, table of rows, and the split over threads.
#include "kernels/gemm_fp32/gemm_fp32.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/parallel.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(std::size_t n, std::size_t k) {
  return n * k * sizeof(float);
}

void pack(const float* w, std::size_t n, std::size_t k, void* packed) {
  if (n * k != 0) std::memcpy(packed, w, n * k * sizeof(float));
}

std::size_t scratch_bytes(std::size_t) {
  return 0;
}

void run(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void*) {
  const float* w = static_cast<const float*>(g.packed);
  const EpilogueFloat& e = g.epilogue;
  const std::size_t length = g.segments != nullptr ? g.segment_length : g.k;
  const std::size_t runs = length == 0 ? 0 : g.k / length;
  for (std::size_t m = 0; m < g.m; ++m) {
    for (std::size_t n = n_begin; n < n_end; ++n) {
      float acc = e.bias != nullptr ? e.bias[n] : 0.0f;
      const float* weight = w + n * g.k;
      for (std::size_t s = 0; s < runs; ++s, weight += length) {
        const float* a = g.segments != nullptr ? g.segments[m * runs + s] : g.a + m * g.a_stride;
        for (std::size_t i = 0; i < length; ++i) acc = std::fma(a[i], weight[i], acc);
      }
      if (e.residual != nullptr) acc += e.residual[m * e.residual_stride + n];
      acc = e.low > acc ? e.low : acc;  // in this order a NaN stays a NaN
      g.c[m * g.c_stride + n] = e.high < acc ? e.high : acc;
    }
  }
}

}  // namespace

const GemmFloatRow gemm_fp32_1x1_scalar = {Isa::scalar, "gemm_fp32_1x1_scalar", 1,  1, packed_bytes,
                                           pack,        scratch_bytes,          run};

std::span<const GemmFloatRow> gemm_fp32_rows() {
  static const GemmFloatRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/gemm_fp32/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void gemm_float(const GemmFloatRow& row, const GemmFloat& g, void* scratch) {
  const std::size_t bytes = row.scratch_bytes(g.k);
  auto scratch_of_thread = [&] {
    return static_cast<char*>(scratch) + static_cast<std::size_t>(thread_index()) * bytes;
  };
  const std::size_t row_blocks = (g.m + row.m_step - 1) / row.m_step;
  const std::size_t column_blocks = (g.n + row.n_step - 1) / row.n_step;
  // By rows every thread reads all weights; with few rows that costs more than the sums, so columns are split instead.
  const bool by_rows = row_blocks >= 4 * static_cast<std::size_t>(threads()) || row_blocks >= column_blocks;
  if (by_rows) {
    parallel_for(g.m, row.m_step, [&](std::size_t begin, std::size_t end) {
      GemmFloat part = g;
      part.m = end - begin;
      if (g.segments != nullptr) {
        part.segments = g.segments + begin * (g.segment_length == 0 ? 0 : g.k / g.segment_length);
      } else {
        part.a = g.a + begin * g.a_stride;
      }
      part.c = g.c + begin * g.c_stride;
      if (g.epilogue.residual != nullptr) {
        part.epilogue.residual = g.epilogue.residual + begin * g.epilogue.residual_stride;
      }
      row.run(part, 0, g.n, scratch_of_thread());
    });
  } else {
    parallel_for(g.n, row.n_step,
                 [&](std::size_t begin, std::size_t end) { row.run(g, begin, end, scratch_of_thread()); });
  }
}

}  // namespace ctk::kernels
