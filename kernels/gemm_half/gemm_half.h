// gemm_fp16, gemm_bf16: gemm_fp32 whose weights stay in the 16 bits of IEEE half or bfloat16, panels half the size.
// They are widened, which is exact, in registers; activations and sums are float, so the result is that of gemm_fp32 on
// the widened weights, bit for bit. pack() takes floats that the 16 bits hold exactly.
#pragma once

#include <span>

#include "kernels/gemm_fp32/gemm_fp32.h"

namespace ctk::kernels {

#define CTK_KERNEL(symbol) extern const GemmFloatRow symbol;
#include "kernels/gemm_half/bf16.def"
#include "kernels/gemm_half/fp16.def"
#undef CTK_KERNEL

std::span<const GemmFloatRow> gemm_fp16_rows();
std::span<const GemmFloatRow> gemm_bf16_rows();

}  // namespace ctk::kernels
