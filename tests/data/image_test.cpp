#include "data/image.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "core/file.h"
#include "data/resample.h"
#include "data/source.h"
#include "tests/data/pillow_jpeg.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

Result<Image> decode(const std::string& bytes) {
  return decode_image(std::as_bytes(std::span(bytes.data(), bytes.size())), "picture");
}

// Pixel [y, x, c] = (7x + 13y + 50c + xy) mod 256, the picture whose numbers were computed with Pillow.
Image pattern(std::int64_t height, std::int64_t width, int channels) {
  Image image{height, width, channels, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>((x * 7 + y * 13 + c * 50 + x * y) % 256));
  return image;
}

std::int64_t sum_of(const Image& image) {
  std::int64_t sum = 0;
  for (std::uint8_t pixel : image.pixels) sum += pixel;
  return sum;
}

// Sum over i of pixel[i] * (i mod 251): depends on where each pixel is.
std::int64_t weighted_sum_of(const Image& image) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) sum += image.pixels[i] * static_cast<std::int64_t>(i % 251);
  return sum;
}

std::array<int, 3> pixel(const Image& image, std::int64_t y, std::int64_t x) {
  const auto at = static_cast<std::size_t>((y * image.width + x) * 3);
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

Result<std::unique_ptr<Source>> open(const std::string& path, const std::string& labels, const Shape& shape,
                                     BadSample on_bad = BadSample::fail) {
  SourceSpec spec;
  spec.path = path;
  spec.labels = labels;
  spec.scale = 1;
  spec.on_bad_sample = on_bad;
  const InputInfo input{"pixels", DType::f32, shape};
  return open_source(spec, std::span(&input, 1));
}

std::vector<float> floats_of(const Source& source, std::size_t index) {
  const Batch batch = source.read_batch(std::span(&index, 1)).value();
  const auto values = batch.inputs[0].values<float>();
  return {values.begin(), values.end()};
}

TEST(Jpeg, DecodesToPillowsPixels) {
  const auto image = decode(pillow_jpeg());
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->height, 18);
  EXPECT_EQ(image->width, 21);
  EXPECT_EQ(sum_of(*image), 146066);
  EXPECT_EQ(weighted_sum_of(*image), 17374341);
  EXPECT_EQ(pixel(*image, 0, 0), (std::array<int, 3>{0, 50, 95}));
  EXPECT_EQ(pixel(*image, 17, 20), (std::array<int, 3>{187, 239, 76}));
  EXPECT_EQ(pixel(*image, 9, 10), (std::array<int, 3>{48, 45, 92}));
}

TEST(Jpeg, RefusesCmykAndTruncatedAndDamagedData) {
  expect_error(decode(flat_jpeg(8, 8, JCS_CMYK, 4, 100)), ErrorCode::input,
               {"picture", "found 4 colour components", "CMYK"});
  const std::string whole = pillow_jpeg();
  for (std::size_t length = 3; length + 1 < whole.size();
       ++length)  // without the last byte of the end mark it is whole
    expect_error(decode(whole.substr(0, length)), ErrorCode::input, {"picture"});
  std::string damaged = whole;
  for (std::size_t i = 700; i < 760; ++i) damaged[i] = '\xff';
  expect_error(decode(damaged), ErrorCode::input, {"picture", "does not decode"});
}

TEST(Jpeg, KeepsGreyAsOneChannel) {
  const auto image = decode(flat_jpeg(8, 4, JCS_GRAYSCALE, 1, 100));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->channels, 1);
  EXPECT_EQ(image->pixels, std::vector<std::uint8_t>(32, 100));
}

TEST(Png, ReadsGreyRgbAndDropsAlpha) {
  EXPECT_EQ(decode(png(2, 1, 0, "\x05\x07"))->pixels, (std::vector<std::uint8_t>{5, 7}));
  EXPECT_EQ(decode(png(1, 1, 2, "\x01\x02\x03"))->pixels, (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(decode(png(1, 1, 6, "\x01\x02\x03\x10"))->pixels, (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(decode(png(1, 1, 4, "\x09\x10"))->pixels, (std::vector<std::uint8_t>{9}));
  // one bit a pixel: 1 0 1 -> 255 0 255
  EXPECT_EQ(decode(png(3, 1, 0, "\xa0", 1))->pixels, (std::vector<std::uint8_t>{255, 0, 255}));
}

TEST(Png, Refuses16BitTruncatedDamagedAndHugeImages) {
  expect_error(decode(png(1, 1, 0, std::string("\x01\x02", 2), 16)), ErrorCode::input,
               {"picture", "8 bits", "found 16"});
  const std::string whole = png(4, 4, 2, std::string(48, '\7'));
  for (std::size_t length = 0; length < whole.size(); ++length)
    expect_error(decode(whole.substr(0, length)), ErrorCode::input, {"picture"});
  std::string damaged = whole;
  damaged[50] = static_cast<char>(damaged[50] ^ 0x55);
  expect_error(decode(damaged), ErrorCode::input, {"picture", "does not decode"});
  expect_error(decode(png(1u << 20, 1u << 9, 0, std::string(1u << 9, '\0'))), ErrorCode::input, {"picture", "at most"});
  expect_error(decode("GIF89a not for us"), ErrorCode::input, {"picture", "JPEG or PNG"});
}

// Numbers by Pillow: Image.resize(size, Image.BILINEAR).
TEST(Resize, GivesPillowsPixelsWhenShrinking) {
  const Image small = *resize_shorter(pattern(7, 10, 3), 4, "");
  EXPECT_EQ(small.height, 4);
  EXPECT_EQ(small.width, 5);  // 4 * 10 / 7 = 5.71, rounded down
  EXPECT_EQ(sum_of(small), 7624);
  const int red[4][5] = {
      {12, 26, 41, 56, 69}, {33, 50, 68, 86, 102}, {59, 79, 100, 122, 141}, {80, 103, 128, 153, 175}};
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x) EXPECT_EQ(pixel(small, y, x)[0], red[y][x]) << y << "," << x;
  const Image large = *resize_shorter(pattern(300, 451, 3), 224, "");
  EXPECT_EQ(large.width, 336);
  EXPECT_EQ(sum_of(large), 28787305);
  EXPECT_EQ(weighted_sum_of(large), 3595421796);
  EXPECT_EQ(pixel(large, 100, 200), (std::array<int, 3>{156, 93, 143}));
  const Image tall = *resize_shorter(pattern(100, 60, 3), 37, "");
  EXPECT_EQ(tall.height, 61);
  EXPECT_EQ(sum_of(tall), 864939);
  EXPECT_EQ(weighted_sum_of(tall), 108219715);
}

TEST(Resize, GivesPillowsPixelsWhenEnlarging) {
  const Image image = *resize_shorter(pattern(3, 4, 1), 6, "");
  const std::vector<std::uint8_t> expected = {0,  2,  5,  9,  12, 16, 19, 21, 3,  5,  9,  13, 16, 20, 23, 25,
                                              10, 12, 16, 20, 23, 27, 31, 33, 16, 18, 23, 27, 31, 35, 39, 41,
                                              23, 25, 30, 34, 38, 42, 47, 49, 26, 28, 33, 37, 42, 46, 51, 53};
  EXPECT_EQ(image.pixels, expected);
}

TEST(Resize, LeavesAnImageOfTheRightSizeAlone) {
  EXPECT_EQ(resize_shorter(pattern(8, 11, 3), 8, "")->pixels, pattern(8, 11, 3).pixels);
}

TEST(Crop, TakesTheMiddleAndRoundsHalvesToEven) {
  // 5 - 2 = 3 rows left over: 1.5 rounds to 2; 3 - 2 = 1 column left over: 0.5 rounds to 0
  Image image = pattern(5, 3, 1);
  const Image middle = *crop_centre(image, 2, "");
  EXPECT_EQ(middle.pixels, (std::vector<std::uint8_t>{image.pixels[2 * 3], image.pixels[2 * 3 + 1], image.pixels[3 * 3],
                                                      image.pixels[3 * 3 + 1]}));
  expect_error(crop_centre(image, 4, "a.jpg"), ErrorCode::input, {"a.jpg", "4 x 4", "5 x 3"});
}

TEST(ImageFolder, SortsByNameByteByByteAndTakesLabelsFromIt) {
  TempFolder folder;
  folder.write("f/10.png", png(1, 1, 0, "\x0a"));
  folder.write("f/9.PNG", png(1, 1, 0, "\x09"));
  folder.write("f/0002.png", png(1, 1, 0, "\x02"));
  folder.write("f/notes.txt", "three pictures");
  for (const char* slash : {"", "/"}) {
    auto source = open(folder.path("f") + slash, "from_name", {1, 1, 1});
    ASSERT_TRUE(source) << source.error().message;
    ASSERT_EQ((*source)->count(), 3u);
    EXPECT_EQ((*source)->where(0), "f/0002.png");
    EXPECT_EQ((*source)->where(1), "f/10.png");
    EXPECT_EQ((*source)->where(2), "f/9.PNG");
    EXPECT_EQ((*source)->label(1), 10);
    EXPECT_EQ(floats_of(**source, 2), (std::vector<float>{9}));
    ASSERT_EQ((*source)->notes().size(), 1u);
    EXPECT_NE((*source)->notes()[0].find("1 files that are no JPEG or PNG are ignored, the first 'notes.txt'"),
              std::string::npos);
  }
}

TEST(ImageFolder, TakesLabelsFromSortedFolderNames) {
  TempFolder folder;
  folder.write("f/zebra/a.png", png(1, 1, 0, "\x02"));
  folder.write("f/ant/b.png", png(1, 1, 0, "\x03"));
  folder.write("f/ant/a.png", png(1, 1, 0, "\x04"));
  auto source = open(folder.path("f"), "from_folder", {1, 1, 1});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->where(0), "f/ant/a.png");
  EXPECT_EQ((*source)->label(1), 0);
  EXPECT_EQ((*source)->label(2), 1);
  folder.write("f/loose.png", png(1, 1, 0, "\x05"));
  expect_error(open(folder.path("f"), "from_folder", {1, 1, 1}), ErrorCode::input, {"from_folder", "'loose.png'"});
  expect_error(open(folder.path("f"), "from_name", {1, 1, 1}), ErrorCode::input, {"from_name", "'ant/a.png'"});
  expect_error(open(folder.path("f"), "y", {1, 1, 1}), ErrorCode::config, {"from_name or from_folder", "'y'"});
}

TEST(ImageZip, ReadsLikeTheFolderAndHashesLikeTheArray) {
  TempFolder folder;
  const std::string rgb("\x01\x02\x03\x04\x05\x06", 6);
  const auto zip = folder.write(
      "a.zip",
      zip_of({{"b/2.png", png(2, 1, 2, rgb), true}, {"a/1.png", png(2, 1, 2, std::string(6, '\x09'))}, {"b/", ""}}));
  auto source = open(zip, "from_folder", {3, 1, 2});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->where(1), "a.zip/b/2.png");
  EXPECT_EQ((*source)->label(1), 1);
  EXPECT_EQ(floats_of(**source, 1), (std::vector<float>{1, 4, 2, 5, 3, 6}));  // planes
  auto array = open(folder.write("a.npy", npy<std::uint8_t>({1, 3, 1, 2}, {1, 4, 2, 5, 3, 6})), "", {3, 1, 2});
  ASSERT_TRUE(array) << array.error().message;
  EXPECT_EQ(*(*source)->hash(1), *(*array)->hash(0));
}

TEST(ImageFolder, ExpandsGreyToThreeChannelsAndRefusesTheReverse) {
  TempFolder folder;
  folder.write("grey/1.png", png(2, 1, 0, "\x05\x07"));
  folder.write("rgb/1.png", png(1, 1, 2, "\x01\x02\x03"));
  auto source = open(folder.path("grey"), "", {3, 1, 2});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(floats_of(**source, 0), (std::vector<float>{5, 7, 5, 7, 5, 7}));
  expect_error(open(folder.path("rgb"), "", {1, 1, 1}), ErrorCode::input, {"'1.png'", "grey", "RGB"});
}

TEST(ImageFolder, RefusesFoldersWithoutImagesAndImagesOfTheWrongSize) {
  TempFolder folder;
  std::filesystem::create_directories(folder.path("empty"));
  expect_error(open(folder.path("empty"), "", {1, 1, 1}), ErrorCode::input, {"empty", "found none"});
  folder.write("texts/a.txt", "a");
  expect_error(open(folder.path("texts"), "", {1, 1, 1}), ErrorCode::input, {"found none among 1 files", "'a.txt'"});
  folder.write("sizes/a.png", png(2, 1, 0, "\x05\x07"));
  expect_error(open(folder.path("sizes"), "", {1, 8, 8}), ErrorCode::input, {"sizes/a.png", "[1,8,8]", "[1,1,2]"});
  SourceSpec spec;
  spec.path = folder.path("sizes");
  const InputInfo input{"pixels", DType::f32, {1, 1, 2}};
  expect_error(open_source(spec, std::span(&input, 1)), ErrorCode::input, {"u8 needs an explicit conversion"});
}

TEST(ImageFolder, NamesABadImageOrSkipsItWhereAllowed) {
  TempFolder folder;
  folder.write("f/a.png", png(1, 1, 0, "\x05"));
  folder.write("f/b.png", png(1, 1, 0, "\x06").substr(0, 50));
  folder.write("f/c.png", png(1, 1, 0, "\x07"));
  auto strict = open(folder.path("f"), "", {1, 1, 1});
  ASSERT_TRUE(strict) << strict.error().message;
  expect_error((*strict)->hashes(), ErrorCode::input, {"'b.png'", "does not decode"});
  const std::size_t second[] = {1};
  expect_error((*strict)->read_batch(second), ErrorCode::input, {"'b.png'", "does not decode"});
  auto lenient = open(folder.path("f"), "", {1, 1, 1}, BadSample::skip);
  ASSERT_TRUE(lenient) << lenient.error().message;
  EXPECT_EQ((*lenient)->count(), 2u);
  ASSERT_EQ((*lenient)->skipped().size(), 1u);
  EXPECT_EQ((*lenient)->skipped()[0].where, "f/b.png");
}

// Numbers by Pillow 13 (libjpeg-turbo).
TEST(RealData, DecodesAPhotoToPillowsPixels) {
  CTK_REAL_DATA(path, "imagenet100/images/0005.jpg");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  const auto image = decode_image(file->bytes(), path);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(sum_of(*image), 15274292);
  EXPECT_EQ(weighted_sum_of(*image), 1910705745);
  EXPECT_EQ(pixel(*image, 0, 0), (std::array<int, 3>{201, 236, 242}));
  EXPECT_EQ(pixel(*image, 223, 223), (std::array<int, 3>{163, 205, 247}));
  EXPECT_EQ(pixel(*image, 100, 57), (std::array<int, 3>{35, 29, 41}));
}

// Every 50th of the 24,000 sorted pictures (4:2:0 chroma); sum over k of (k + 1) * pixel sum, by Pillow.
TEST(RealData, DecodesPicturesOfAZipToPillowsPixels) {
  CTK_REAL_DATA(path, "cifar10/train_24000.zip");
  auto source = open(path, "from_folder", {3, 32, 32});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->count(), 24000u);
  EXPECT_EQ((*source)->where(23999), "train_24000.zip/truck/4999.jpg");
  EXPECT_EQ((*source)->label(2400), 1);
  std::int64_t weighted = 0;
  for (std::size_t k = 0; k * 50 < 24000; ++k) {
    double sum = 0;
    for (float value : floats_of(**source, k * 50)) sum += static_cast<double>(value);
    weighted += static_cast<std::int64_t>(sum) * static_cast<std::int64_t>(k + 1);
  }
  EXPECT_EQ(weighted, 42588172573);
}

}  // namespace
}  // namespace ctk::data
