// conv_w8a8: integer convolution on NHWC uint8, as a product of gathered patches with a packed weight matrix. Serves 8
// and 4 bit weights (by the gemm row given), any kernel, stride, dilation, groups, and ConvTranspose.
//
// The K order of a patch is (kernel row, kernel column, channel). Padding reads the input's zero point, so that it
// stands for real 0 exactly.
#pragma once

#include "kernels/conv_shape.h"
#include "kernels/gemm_w8a8/gemm_w8a8.h"

namespace ctk::kernels {

std::size_t conv_int_packed_bytes(const GemmIntRow& row, const ConvShape& shape);
// codes: int8 in [out_channels, channels_per_group, kernel_height, kernel_width] order (for a transposed convolution
// the caller has permuted ONNX's [in, out/group, ...] into this order; the kernel is not flipped: tap (ky,kx) of the
// gather rule in conv_shape.h meets weight (ky,kx)).
void conv_int_pack(const GemmIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed);
// Bytes for all `threads` threads together.
std::size_t conv_int_scratch_bytes(const GemmIntRow& row, const ConvShape& shape, int threads);
// x: uint8 NHWC; y: uint8 or float32 NHWC; epilogue.residual (if any) NHWC of the output's shape.
// Allocates nothing; splits over ctk::threads().
void conv_int(const GemmIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
              std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch);

}  // namespace ctk::kernels
