// depthwise_fp32: one filter per channel (groups == in_channels == out_channels), NHWC float32.
#pragma once

#include <span>

#include "core/cpu_isa.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct DepthwiseFloatRow {
  Isa isa;
  const char* name;
  std::size_t (*packed_bytes)(const ConvShape& shape);
  void (*pack)(const ConvShape& shape, const float* weights, void* packed);  // [channels, taps]
  std::size_t (*scratch_bytes)(const ConvShape& shape);                      // per thread
  void (*run)(const ConvShape& shape, const void* packed, const float* x, const EpilogueFloat& epilogue, float* y,
              std::int64_t row_begin, std::int64_t row_end, void* scratch);
};

#define CTK_KERNEL(symbol) extern const DepthwiseFloatRow symbol;
#include "kernels/depthwise_fp32/kernels.def"
#undef CTK_KERNEL

std::span<const DepthwiseFloatRow> depthwise_fp32_rows();
void depthwise_float(const DepthwiseFloatRow& row, const ConvShape& shape, const void* packed, const float* x,
                     const EpilogueFloat& epilogue, float* y, void* scratch);

}  // namespace ctk::kernels
