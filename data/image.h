// Images: JPEG and PNG bytes to 8-bit pixels, the same as Pillow's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/tensor.h"

namespace ctk::data {

struct Image {
  std::int64_t height = 0, width = 0;
  int channels = 0;                  // 1 (grey) or 3 (RGB)
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;  // of one image; more is taken for a decompression bomb

// By the first bytes, not by the name. Alpha is dropped, palettes are expanded, EXIF rotation is ignored.
// Errors: input (neither JPEG nor PNG, truncated, damaged, CMYK, more than 8 bits a channel, too large; open with
// `where`).
Result<Image> decode_image(std::span<const std::byte> bytes, const std::string& where);
Result<Image> decode_jpeg(std::span<const std::byte> bytes, const std::string& where);
Result<Image> decode_png(std::span<const std::byte> bytes, const std::string& where);

// Planes [channels, height, width] as u8.
Result<Tensor> to_planes(const Image& image);

}  // namespace ctk::data
