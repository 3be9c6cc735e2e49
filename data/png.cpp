// PNG by libpng: palettes and small greys are expanded to 8 bits, alpha is dropped, gamma is left alone, as Pillow
// does.
#include <csetjmp>
#include <cstring>

#include <png.h>

#include "data/image.h"

namespace ctk::data {
namespace {

struct Reader {
  std::span<const std::byte> rest;
  char message[160];
};

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "the file ends early");
  std::memcpy(out, reader->rest.data(), count);
  reader->rest = reader->rest.subspan(count);
}

void fail(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof reader->message - 1);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

// The parts that may be left by a jump: no object with a destructor is made in here. False: the reader's message says
// why.
bool read_header(Decoder& decoder, Reader& reader) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_set_read_fn(decoder.png, &reader, read_bytes);
  png_set_user_limits(decoder.png, 1u << 20, 1u << 20);
  png_read_info(decoder.png, decoder.info);
  return true;
}

bool set_output(Decoder& decoder) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  const int type = png_get_color_type(decoder.png, decoder.info);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(decoder.png);
  if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(decoder.png);
  png_set_strip_alpha(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

bool read_rows(Decoder& decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  png_read_image(decoder.png, rows);
  png_read_end(decoder.png, nullptr);
  return true;
}

}  // namespace

Result<Image> decode_png(std::span<const std::byte> bytes, const std::string& where) {
  Reader reader{bytes, {}};
  Decoder decoder;
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, fail, ignore);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) return input_error(where + ": no memory to decode the PNG.");
  const auto damaged = [&] {
    return input_error(where + ": the PNG does not decode: " + reader.message + ". Replace it, or remove it.");
  };
  if (!read_header(decoder, reader)) return damaged();
  const std::int64_t height = png_get_image_height(decoder.png, decoder.info);
  const std::int64_t width = png_get_image_width(decoder.png, decoder.info);
  if (height * width > kMaxPixels)
    return input_error(where + ": expected at most " + std::to_string(kMaxPixels) + " pixels, found " +
                       std::to_string(height * width) + ". Convert it, or remove it.");
  if (png_get_bit_depth(decoder.png, decoder.info) > 8)
    return input_error(where + ": expected 8 bits a channel, found 16. Convert it, or remove it.");
  if (!set_output(decoder)) return damaged();
  Image image{height, width, png_get_channels(decoder.png, decoder.info), {}};
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  if ((image.channels != 1 && image.channels != 3) || png_get_rowbytes(decoder.png, decoder.info) != row_bytes)
    return internal_error(where + ": a PNG of a form that the decoder was not told of");
  image.pixels.resize(row_bytes * static_cast<std::size_t>(height));
  std::vector<png_bytep> rows(static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * row_bytes;
  if (!read_rows(decoder, rows.data())) return damaged();
  return image;
}

}  // namespace ctk::data
