// Integer layers as command streams: which kinds there are, and how one is compiled for a card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/npu/tiling.h"

namespace ctk::kernels::npu {

// A stream that computes one layer. Regions: `constants` as made by make_constants(), `input` and `residual` uint8 and
// `output` uint8 or float32, all channels-last (a product: rows of a matrix).
struct Program {
  Sizes sizes;
  Tile tile;
  Stream stream;
  RegionBytes bytes{};
  Counts counts;  // of one run, by check_stream()
};

// rule: as for the other rows; its pointers are not read. residual.stride: 0 where nothing is added, else the number of
// output channels.
// Errors: config (no tile fits the card), input (a shape without products, a residual beside floats).
Result<Program> compile(const Card& card, const ConvShape& shape, bool is_per_channel, const EpilogueInt& rule,
                        std::uint8_t input_zero_point);

// Weights in the order the streams read them, then a Column for each output. Does not depend on the card.
// codes: int8 [out_channels, channels_per_group, kernel_height, kernel_width], as the CPU rows take them.
std::size_t constant_bytes(const ConvShape& shape);
void make_constants(const ConvShape& shape, bool is_per_channel, const std::int8_t* codes, const std::int32_t* bias,
                    const float* multiplier, void* constants);

// One kernel kind on the machine: the CPU's contract, compiled.
struct Row {
  std::string_view kind;  // "conv_w8a8"
  const char* name;       // "conv_w8a8_npu_sim"
  Result<Program> (*compile)(const Card& card, const ConvShape& shape, const EpilogueInt& rule,
                             std::uint8_t input_zero_point);
  bool is_per_channel = false;
};

std::span<const Row> rows();
// Null: the machine has no commands for this kind.
const Row* find_row(std::string_view kind);

}  // namespace ctk::kernels::npu
