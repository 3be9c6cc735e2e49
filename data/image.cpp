#include "data/image.h"

#include <string_view>

namespace ctk::data {

Result<Image> decode_image(std::span<const std::byte> bytes, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, where);
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, where);
  return input_error(where + ": expected a JPEG or PNG image, found " +
                     (bytes.empty() ? "an empty file" : "bytes of another kind") + ". Convert it, or remove it.");
}

Result<Tensor> to_planes(const Image& image) {
  CTK_TRY(Tensor planes, Tensor::zeros(DType::u8, {image.channels, image.height, image.width}));
  const auto out = planes.mutable_values<std::uint8_t>();
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t pixels = image.pixels.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) out[c * pixels + i] = image.pixels[i * channels + c];
  return planes;
}

}  // namespace ctk::data
