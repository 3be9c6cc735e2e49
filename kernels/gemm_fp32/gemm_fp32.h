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
  const float* a = nullptr;        // [m, k], rows a_stride apart
  std::size_t a_stride = 0;
  const void* packed = nullptr;    // by the same row's pack(), 64-byte aligned
  EpilogueFloat epilogue;          // for column 0
  float* c = nullptr;              // [m, n], rows c_stride apart
  std::size_t c_stride = 0;
};

struct GemmFloatRow {
  Isa isa;
  const char* name;
  std::size_t m_step, n_step;
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  void (*pack)(const float* w, std::size_t n, std::size_t k, void* packed);   // w: [n, k] row-major
  std::size_t (*scratch_bytes)(std::size_t k);                                // per thread
  void (*run)(const GemmFloat& g, std::size_t n_begin, std::size_t n_end, void* scratch);
};

std::span<const GemmFloatRow> gemm_fp32_rows();
void gemm_float(const GemmFloatRow& row, const GemmFloat& g, void* scratch);   // over threads; scratch: threads * bytes

}  // namespace ctk::kernels
