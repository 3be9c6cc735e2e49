// Writers of small data files for the tests of data/: .npy bytes, zip archives (honest and lying), PNG, JPEG; and
// checks of error messages. They share no code with the readers.
#pragma once

#include <gtest/gtest.h>
#include <jpeglib.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/result.h"
#include "core/shape.h"

namespace ctk::data::test {

// A folder that goes away with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ctk_data_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

template <class T>
std::string descr_of() {
  const std::string kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
  return (sizeof(T) == 1 ? "|" : "<") + kind + std::to_string(sizeof(T));
}

inline std::string npy_header(const std::string& descr, const std::string& shape, bool fortran = false) {
  std::string text =
      "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string head = "\x93NUMPY";
  head += '\x01';
  head += '\0';
  head += static_cast<char>(text.size() & 255);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

inline std::string tuple_of(const Shape& shape) {
  std::string text = "(";
  for (std::int64_t dimension : shape) text += std::to_string(dimension) + ", ";
  return text + ")";
}

template <class T>
std::string npy(const Shape& shape, const std::vector<T>& values) {
  return npy_header(descr_of<T>(), tuple_of(shape)) +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// first, first + 1, ... in row-major order, as many as the shape holds.
template <class T>
std::string npy_counting(const Shape& shape, T first = T(0)) {
  std::vector<T> values(elements(shape));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(first + static_cast<T>(i));
  return npy<T>(shape, values);
}

struct ZipItem {
  std::string name, content;
  bool deflated = false;
  std::optional<std::uint32_t> claimed_bytes = {};  // written instead of the true size
  std::optional<std::uint32_t> claimed_crc = {};
  std::optional<std::uint32_t> claimed_packed = {};
  std::uint16_t flags = 0;
  std::optional<std::uint16_t> method = {};
  bool zip64 = false;  // sizes in the 64-bit extra field, as numpy.savez writes large arrays
};

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? value >> (8 * i) & 255 : 0);
  return text;
}

inline std::string deflate_raw(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::uint32_t crc_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

inline std::string zip_of(const std::vector<ZipItem>& items) {
  std::string body, directory;
  for (const ZipItem& item : items) {
    const std::string packed = item.deflated ? deflate_raw(item.content) : item.content;
    const std::uint64_t size = item.claimed_bytes.value_or(static_cast<std::uint32_t>(item.content.size()));
    const std::uint64_t packed_size = item.claimed_packed.value_or(static_cast<std::uint32_t>(packed.size()));
    const std::string extra = item.zip64 ? little(1, 2) + little(16, 2) + little(size, 8) + little(packed_size, 8) : "";
    const std::string common =
        little(20, 2) + little(item.flags, 2) + little(item.method.value_or(item.deflated ? 8 : 0), 2) + little(0, 4) +
        little(item.claimed_crc.value_or(crc_of(item.content)), 4) + little(item.zip64 ? 0xffffffff : packed_size, 4) +
        little(item.zip64 ? 0xffffffff : size, 4) + little(item.name.size(), 2) + little(extra.size(), 2);
    directory += "PK\x01\x02" + little(20, 2) + common + little(0, 10) + little(body.size(), 4) + item.name + extra;
    body += "PK\x03\x04" + common + item.name + extra + packed;
  }
  return body + directory + "PK\x05\x06" + little(0, 4) + little(items.size(), 2) + little(items.size(), 2) +
         little(directory.size(), 4) + little(body.size(), 4) + little(0, 2);
}

// colour: 0 grey, 2 RGB, 6 RGBA (PNG's numbers); rows of pixels, `depth` bits a channel.
inline std::string png(std::uint32_t width, std::uint32_t height, int colour, const std::string& pixels,
                       int depth = 8) {
  const auto big = [](std::uint32_t v) {
    std::string text = little(v, 4);
    return std::string(text.rbegin(), text.rend());
  };
  const auto chunk = [&](const std::string& kind, const std::string& data) {
    return big(static_cast<std::uint32_t>(data.size())) + kind + data + big(crc_of(kind + data));
  };
  const std::size_t row = pixels.size() / height;
  std::string raw;
  for (std::uint32_t y = 0; y < height; ++y) raw += std::string(1, '\0') + pixels.substr(y * row, row);
  std::string packed(compressBound(raw.size()), '\0');
  uLongf length = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &length, reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(length);
  std::string header = big(width) + big(height) + static_cast<char>(depth) + static_cast<char>(colour);
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header + std::string(3, '\0')) + chunk("IDAT", packed) + chunk("IEND", "");
}

// A JPEG of one colour, in any colour space libjpeg knows.
inline std::string flat_jpeg(unsigned width, unsigned height, J_COLOR_SPACE space, int components,
                             unsigned char level) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &memory, &length);
  info.image_width = width;
  info.image_height = height;
  info.input_components = components;
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row(static_cast<std::size_t>(width) * static_cast<std::size_t>(components), level);
  while (info.next_scanline < height) {
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<char*>(memory), length);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

// The error of `result` has this code, and its message all of these words.
template <class R>
void expect_error(const R& result, ErrorCode code, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(result.has_value()) << "expected an error";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (std::string_view word : words)
    EXPECT_NE(result.error().message.find(word), std::string::npos)
        << "'" << word << "' in: " << result.error().message;
}

// Real data: CTK_DATA, or ../shared/data beside the repository. Empty when absent.
inline std::string real_data(const std::string& name) {
  const char* folder = std::getenv("CTK_DATA");
  const std::string path =
      (folder ? std::string(folder) : std::string(CTK_SOURCE_DIR) + "/../shared/data") + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace ctk::data::test

// Binds `variable` to the path of a real data file, or skips the test and says which file was missing.
#define CTK_REAL_DATA(variable, name)                              \
  const std::string variable = ::ctk::data::test::real_data(name); \
  if (variable.empty()) GTEST_SKIP() << "needs " << name << " below CTK_DATA or ../shared/data"
