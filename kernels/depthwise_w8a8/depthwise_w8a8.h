// depthwise_w8a8: one filter per channel (groups == in_channels == out_channels), NHWC uint8, int8 weights.
#pragma once

#include <span>

#include "core/cpu_isa.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

struct DepthwiseIntRow {
  Isa isa;
  const char* name;
  std::size_t (*packed_bytes)(const ConvShape& shape);
  // codes: int8 [channels, kernel_height * kernel_width].
  void (*pack)(const ConvShape& shape, const std::int8_t* codes, void* packed);
  std::size_t (*scratch_bytes)(const ConvShape& shape);  // per thread
  // Output rows [row_begin, row_end) of batch * out_height, single-threaded.
  void (*run)(const ConvShape& shape, const void* packed, const std::uint8_t* x, std::uint8_t x_zero_point,
              const EpilogueInt& epilogue, void* y, std::int64_t row_begin, std::int64_t row_end, void* scratch);
};

std::span<const DepthwiseIntRow> depthwise_w8a8_rows();

// Splits over threads by output rows. scratch: threads * scratch_bytes(shape).
void depthwise_int(const DepthwiseIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch);

}  // namespace ctk::kernels
