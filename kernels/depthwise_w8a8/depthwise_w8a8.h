// depthwise_w8a8: one filter per channel (groups == in_channels == out_channels), NHWC uint8, int8 weights. Exact int32
// sums and the epilogue of kernels/epilogue.h; padding reads the input's zero point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu_isa.h"
#include "kernels/conv_shape.h"
#include "kernels/epilogue.h"

namespace ctk::kernels {

// One output row over padded, staged input: output x of tap t reads channels at taps[t] + x * step.
struct DepthwiseLine {
  std::size_t width = 0, channels = 0;
  // [kernel_height * kernel_width]; one pixel and 16 elements past the last one may be read
  const char* const* taps = nullptr;
  std::size_t tap_count = 0, step = 0;  // step: bytes
  const void* packed = nullptr;         // by the same row's pack()
  EpilogueInt epilogue;                 // for pixel 0, channel 0; residual stride == channels
  void* y = nullptr;                    // [width, channels] uint8 or float32
};

// One output row of a 3x3 window, stride 1 or 2, that reads uint8 input where it lies; channels: a multiple of 16.
struct DepthwiseWindow {
  std::size_t width = 0, channels = 0, stride = 1;
  const std::uint8_t* rows[3] = {};            // at the first column that is not padding
  std::size_t pixels[3] = {};                  // bytes from one column to the next: channels, or 0 in a row of padding
  const std::uint8_t* padding = nullptr;       // [channels]
  bool pads_left = false, pads_right = false;  // whether the first, the last column is padding
  const void* packed = nullptr;                // as for DepthwiseLine
  EpilogueInt epilogue;
  void* y = nullptr;
};

struct DepthwiseIntRow {
  Isa isa;
  const char* name;
  std::size_t element_bytes;  // of a staged activation: 1 (uint8) or 2 (int16)
  // Writes `count` activations in the staged type. Touches exactly count elements on both sides.
  void (*stage)(const std::uint8_t* x, std::size_t count, void* staged);
  std::size_t (*packed_bytes)(std::size_t channels, std::size_t tap_count);
  // codes: int8 [channels, tap_count].
  void (*pack)(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed);
  void (*run_line)(const DepthwiseLine& line);
  void (*run_window)(const DepthwiseWindow& window) = nullptr;  // null: nothing is read in place
};

std::span<const DepthwiseIntRow> depthwise_w8a8_rows();

std::size_t depthwise_int_packed_bytes(const DepthwiseIntRow& row, const ConvShape& shape);
// codes: int8 [channels, kernel_height * kernel_width]; packed: 64-byte aligned.
void depthwise_int_pack(const DepthwiseIntRow& row, const ConvShape& shape, const std::int8_t* codes, void* packed);
// Bytes for all `threads` threads together.
std::size_t depthwise_int_scratch_bytes(const DepthwiseIntRow& row, const ConvShape& shape, int threads);
// Splits over threads by output rows. scratch: 64-byte aligned. Allocates nothing.
void depthwise_int(const DepthwiseIntRow& row, const ConvShape& shape, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch);

}  // namespace ctk::kernels
