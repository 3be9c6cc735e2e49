#include "kernels/gemm_w4a8/gemm_w4a8.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const GemmIntRow symbol;
#include "kernels/gemm_w4a8/kernels.def"
#undef CTK_KERNEL

extern const GemmIntRow gemm_w8a8_scalar;

namespace {

// Narrow weights change nothing for exact scalar sums.
GemmIntRow scalar() {
  GemmIntRow row = gemm_w8a8_scalar;
  row.name = "gemm_w4a8_1x1_scalar";
  return row;
}

}  // namespace

std::span<const GemmIntRow> gemm_w4a8_rows() {
  static const GemmIntRow rows[] = {
      scalar(),
#define CTK_KERNEL(symbol) symbol,
#include "kernels/gemm_w4a8/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
