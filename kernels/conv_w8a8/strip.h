// The part of an image a block of outputs reads, copied once in a row's staged type, padding included.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv_shape.h"
#include "kernels/window_axis.h"

namespace ctk::kernels {

// Output pixels [y, y + height) x [x, x + width) of one image; they may reach past the image's outputs.
struct OutputBlock {
  std::int64_t image = 0, y = 0, x = 0, height = 1, width = 1;
};

// How one activation is staged.
struct Staging {
  void (*stage)(const std::uint8_t* x, std::size_t count, void* staged);
  std::size_t element_bytes;
};

struct Strip {
  Staging staging;
  const ConvShape& shape;
  WindowAxis vertical, horizontal;
  std::size_t pixel;  // bytes from one staged pixel to the next
  std::size_t slack;  // readable bytes past the last pixel

  // adjacent: pixels follow each other without a gap; otherwise a gap may keep them off the same few cache sets.
  Strip(const Staging& staging, const ConvShape& shape, bool adjacent, std::size_t slack_elements);

  std::size_t row_bytes(std::int64_t width) const { return static_cast<std::size_t>(horizontal.span(width)) * pixel; }
  std::size_t bytes(std::int64_t height, std::int64_t width) const {
    return static_cast<std::size_t>(vertical.span(height)) * row_bytes(width) + slack;
  }
  void stage(const OutputBlock& block, const std::uint8_t* x, std::uint8_t zero_point, char* out) const;

 private:
  void stage_padding(std::int64_t pixels, std::uint8_t zero_point, char* out) const;
  void stage_line(const OutputBlock& block, const std::uint8_t* line, std::uint8_t zero_point, char* out) const;
};

}  // namespace ctk::kernels
