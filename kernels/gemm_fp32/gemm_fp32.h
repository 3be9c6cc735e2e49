// gemm_fp32: C[m,n] = epilogue(sum_k A[m,k] * W[n,k]) in float32, one fused multiply-add per k in ascending order
// (kernels/epilogue.h), so every row and tile gives the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu_isa.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct GemmFloat {
  std::size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // [m, k], rows a_stride apart
  std::size_t a_stride = 0;
  // Instead of `a`: row m is k / segment_length runs of segment_length floats, run s at segments[m * runs + s]. A
  // convolution points these into its input, so that patches are never copied. k must be a multiple of segment_length.
  const float* const* segments = nullptr;
  std::size_t segment_length = 0;
  const void* packed = nullptr;  // by the same row's pack(), 64-byte aligned
  EpilogueFloat epilogue;        // for column 0
  float* c = nullptr;            // [m, n], rows c_stride apart
  std::size_t c_stride = 0;
};

struct GemmFloatRow {
  Isa isa;
  const char* name;
  std::size_t m_step, n_step;
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  void (*pack)(const float* w, std::size_t n, std::size_t k, void* packed);  // w: [n, k] row-major
  std::size_t (*scratch_bytes)(std::size_t k);                               // per thread
  void (*run)(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void* scratch);
};

#define CTK_KERNEL(symbol) extern const GemmFloatRow symbol;
#include "kernels/gemm_fp32/kernels.def"
#undef CTK_KERNEL

std::span<const GemmFloatRow> gemm_fp32_rows();

// Splits one product over threads by rows, or by columns when rows are few. scratch: thread count * scratch_bytes.
void gemm_float(const GemmFloatRow& row, const GemmFloat& g, void* scratch);

}  // namespace ctk::kernels
