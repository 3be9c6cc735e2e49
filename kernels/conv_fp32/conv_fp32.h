// conv_fp32: float convolution on NHWC, as gathered patches times a packed matrix; the float twin of conv_w8a8 with the
// same K order (kernel row, kernel column, channel).
#pragma once

#include "kernels/conv_shape.h"
#include "kernels/gemm_fp32/gemm_fp32.h"

namespace ctk::kernels {

std::size_t conv_float_packed_bytes(const GemmFloatRow& row, const ConvShape& shape);
// weights: [out_channels, channels_per_group, kernel_height, kernel_width]; transposed: see conv_w8a8.h.
void conv_float_pack(const GemmFloatRow& row, const ConvShape& shape, const float* weights, void* packed);
std::size_t conv_float_scratch_bytes(const GemmFloatRow& row, const ConvShape& shape, int threads);
void conv_float(const GemmFloatRow& row, const ConvShape& shape, const void* packed, const float* x,
                const EpilogueFloat& epilogue, float* y, void* scratch);

}  // namespace ctk::kernels
