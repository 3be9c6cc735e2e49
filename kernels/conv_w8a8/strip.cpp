#include "kernels/conv_w8a8/strip.h"

#include <algorithm>
#include <cstring>

namespace ctk::kernels {
namespace {

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Strip::Strip(const Staging& staging, const ConvShape& shape, bool adjacent, std::size_t slack_elements)
    : staging(staging),
      shape(shape),
      vertical(height_axis(shape)),
      horizontal(width_axis(shape)),
      pixel(size(shape.in_channels) * staging.element_bytes),
      slack(slack_elements * staging.element_bytes) {
  if (!adjacent && pixel % 512 == 0) pixel += 64;
}

void Strip::stage_padding(std::int64_t pixels, std::uint8_t zero_point, char* out) const {
  std::uint8_t codes[64];
  std::memset(codes, zero_point, sizeof(codes));
  const std::size_t count = size(pixels) * pixel / staging.element_bytes;
  for (std::size_t i = 0; i < count; i += sizeof(codes)) {
    staging.stage(codes, std::min(sizeof(codes), count - i), out + i * staging.element_bytes);
  }
}

void Strip::stage_line(const OutputBlock& block, const std::uint8_t* line, std::uint8_t zero_point, char* out) const {
  const std::size_t channels = size(shape.in_channels);
  const std::int64_t span = horizontal.span(block.width);
  if (line == nullptr) return stage_padding(span, zero_point, out);
  const bool has_gaps = pixel != channels * staging.element_bytes;
  const bool runs = !has_gaps && !horizontal.is_transposed && (!horizontal.is_sampled() || horizontal.stride == 1);
  for (std::int64_t at = 0; at < span;) {
    const std::int64_t i = horizontal.source(block.x, at);
    std::int64_t run = 1;
    if (i < 0) {
      while (at + run < span && horizontal.source(block.x, at + run) < 0) ++run;
      stage_padding(run, zero_point, out + size(at) * pixel);
    } else {
      if (runs) run = std::min(span - at, horizontal.in - i);
      staging.stage(line + size(i) * channels, size(run) * channels, out + size(at) * pixel);
    }
    at += run;
  }
}

void Strip::stage(const OutputBlock& block, const std::uint8_t* x, std::uint8_t zero_point, char* out) const {
  const std::int64_t height = vertical.span(block.height);
  const std::size_t pitch = row_bytes(block.width);
  for (std::int64_t at = 0; at < height; ++at) {
    const std::int64_t i = vertical.source(block.y, at);
    const std::size_t first = size((block.image * shape.in_height + i) * shape.in_width * shape.in_channels);
    stage_line(block, i < 0 ? nullptr : x + first, zero_point, out + size(at) * pitch);
  }
  std::memset(out + size(height) * pitch, 0, slack);
}

}  // namespace ctk::kernels
