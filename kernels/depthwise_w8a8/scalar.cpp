// The reference: packed weights are the codes as given.
#include <cstring>

#include "kernels/depthwise_w8a8/depthwise_w8a8.h"
#include "kernels/requantize.h"

namespace ctk::kernels {
namespace {

std::size_t packed_bytes(std::size_t channels, std::size_t tap_count) {
  return channels * tap_count;
}

void pack(const std::int8_t* codes, std::size_t channels, std::size_t tap_count, void* packed) {
  if (channels * tap_count != 0) std::memcpy(packed, codes, channels * tap_count);
}

void stage(const std::uint8_t* x, std::size_t count, void* staged) {
  if (count != 0) std::memcpy(staged, x, count);
}

void run_line(const DepthwiseLine& line) {
  for (std::size_t x = 0; x < line.width; ++x) {
    const std::int8_t* w = static_cast<const std::int8_t*>(line.packed);
    for (std::size_t c = 0; c < line.channels; ++c) {
      std::uint32_t acc = static_cast<std::uint32_t>(line.epilogue.bias[c]);  // unsigned: may wrap
      for (std::size_t t = 0; t < line.tap_count; ++t) {
        acc += static_cast<std::uint32_t>(int{static_cast<std::uint8_t>(line.taps[t][x * line.step + c])} * int{*w++});
      }
      store_scalar(line.epilogue, static_cast<std::int32_t>(acc), x, c, line.y, line.channels);
    }
  }
}

}  // namespace

extern const DepthwiseIntRow depthwise_w8a8_scalar;
constinit const DepthwiseIntRow depthwise_w8a8_scalar{
    .isa = Isa::scalar,
    .name = "depthwise_w8a8_1_scalar",
    .element_bytes = 1,
    .stage = stage,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run_line = run_line,
};

}  // namespace ctk::kernels
