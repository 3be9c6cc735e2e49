// gemm_w8a8: C[m,n] = epilogue(sum_k A[m,k] * W[n,k]), A uint8, W int8, exact int32 sums (kernels/epilogue.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct GemmInt {
  std::size_t m = 0, n = 0, k = 0;
  const std::uint8_t* a = nullptr;      // [m, k], rows a_stride apart, any alignment
  std::size_t a_stride = 0;
  const void* packed = nullptr;         // made by the same row's pack(), 64-byte aligned
  EpilogueInt epilogue;                 // its bias, multiplier and residual start at this block's first column
  void* c = nullptr;                    // uint8 or float32 [m, n], rows c_stride elements apart
  std::size_t c_stride = 0;
};

// One instruction set's implementation; the same type serves gemm_w8a8 and gemm_w4a8 (weights within -8..7).
struct GemmIntRow {
  Isa isa;
  const char* name;
  std::size_t m_step;   // row-block and column-block sizes at which work may be split without loss
  std::size_t n_step;
  std::size_t (*packed_bytes)(std::size_t n, std::size_t k);
  // w: canonical int8 [n, k] row-major.
  void (*pack)(const std::int8_t* w, std::size_t n, std::size_t k, void* packed);
  // Scratch one thread needs for run(), 64-byte aligned.
  std::size_t (*scratch_bytes)(std::size_t k);
  // Computes columns [n_begin, n_end) of all m rows, single-threaded; n_begin is a multiple of n_step.
  // bias/multiplier/c/residual in `g` are for column 0.
  void (*run)(const GemmInt& g, std::size_t n_begin, std::size_t n_end, void* scratch);
};

std::span<const GemmIntRow> gemm_w8a8_rows();

// Splits one product over threads by rows, or by columns when there are few rows. scratch: thread count * scratch_bytes.
void gemm_int(const GemmIntRow& row, const GemmInt& g, void* scratch);

}  // namespace ctk::kernels
