// gemm_w4a8: as gemm_w8a8 with weights in -8..7 (one scale per output channel). Rows may use that the product of two
// neighbours fits into 16 bits. pack() takes unpacked codes, one int8 each.
#pragma once

#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::kernels {

std::span<const GemmIntRow> gemm_w4a8_rows();

}  // namespace ctk::kernels
