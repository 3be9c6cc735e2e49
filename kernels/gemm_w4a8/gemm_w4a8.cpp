#include "kernels/gemm_w4a8/gemm_w4a8.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const GemmIntRow symbol;
#define CTK_WIDER_KERNEL(symbol, name) extern const GemmIntRow symbol;
#include "kernels/gemm_w4a8/kernels.def"
#undef CTK_KERNEL
#undef CTK_WIDER_KERNEL

namespace {

GemmIntRow renamed(GemmIntRow row, const char* name) {
  row.name = name;
  return row;
}

}  // namespace

std::span<const GemmIntRow> gemm_w4a8_rows() {
  static const GemmIntRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#define CTK_WIDER_KERNEL(symbol, name) renamed(symbol, name),
#include "kernels/gemm_w4a8/kernels.def"
#undef CTK_KERNEL
#undef CTK_WIDER_KERNEL
  };
  return rows;
}

}  // namespace ctk::kernels
