// JPEG by libjpeg-turbo with its defaults (accurate integer DCT, smooth chroma upsampling), as Pillow decodes.
#include <csetjmp>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

#include "data/image.h"

namespace ctk::data {
namespace {

// libjpeg reports through callbacks; fatal ones must not return, so they jump back to decode().
struct ErrorState {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void fail(j_common_ptr common) {
  auto* state = reinterpret_cast<ErrorState*>(common->err);
  common->err->format_message(common, state->message);
  std::longjmp(state->jump, 1);
}

// Level -1 is a warning: the data is damaged and the decoder would go on with invented pixels. Harmless ones are let
// by.
void on_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM) fail(common);
}

void print_nothing(j_common_ptr) {}

// The parts that may be left by a jump: no object with a destructor is made in here. False: state.message says why.
bool start(jpeg_decompress_struct& info, ErrorState& state, std::span<const std::byte> bytes) {
  if (setjmp(state.jump) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&info, TRUE);
  return true;
}

bool read_rows(jpeg_decompress_struct& info, ErrorState& state, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(state.jump) != 0) return false;
  info.out_color_space = info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + info.output_scanline * row_bytes;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

}  // namespace

Result<Image> decode_jpeg(std::span<const std::byte> bytes, const std::string& where) {
  jpeg_decompress_struct info{};
  ErrorState state{};
  info.err = jpeg_std_error(&state.base);
  state.base.error_exit = fail;
  state.base.emit_message = on_message;
  state.base.output_message = print_nothing;
  const auto damaged = [&] {
    jpeg_destroy_decompress(&info);
    return input_error(where + ": the JPEG does not decode: " + state.message + ". Replace it, or remove it.");
  };
  if (!start(info, state, bytes)) return damaged();
  const std::int64_t pixel_count =
      static_cast<std::int64_t>(info.image_height) * static_cast<std::int64_t>(info.image_width);
  std::string refused;
  if (info.num_components != 1 && info.num_components != 3)
    refused =
        "expected a grey or RGB JPEG, found " + std::to_string(info.num_components) + " colour components (CMYK?)";
  else if (info.data_precision != 8)
    refused = "expected 8 bits a channel, found " + std::to_string(info.data_precision);
  else if (pixel_count > kMaxPixels)
    refused = "expected at most " + std::to_string(kMaxPixels) + " pixels, found " + std::to_string(pixel_count);
  if (!refused.empty()) {
    jpeg_destroy_decompress(&info);
    return input_error(where + ": " + refused + ". Convert it, or remove it.");
  }
  Image image{info.image_height, info.image_width, info.num_components, {}};
  const std::size_t row_bytes = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(image.height));
  if (!read_rows(info, state, image.pixels.data(), row_bytes)) return damaged();
  jpeg_destroy_decompress(&info);
  return image;
}

}  // namespace ctk::data
