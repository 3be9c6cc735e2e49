// Resize: a separable triangle filter, stretched by the factor of reduction, first along rows, then along columns.
// In:  image [h, w, c] u8. Out: [h', w', c] u8, rounded to 8 bits after each of the two directions.
// Cost: O(pixels * filter length).
// Source: Pillow's documented resampling (BILINEAR, `reducing_gap` off): weights in fixed point with 22 bits,
// normalized to sum 1, rounded to nearest. Same pixels as Pillow; the tests compare.
#include "data/resample.h"

#include <algorithm>
#include <cmath>

namespace ctk::data {
namespace {

constexpr int kFractionBits = 22;  // of a weight: 32 minus 8 bits of pixel minus 2 of headroom

// The weights of one output position: inputs first .. first + weights.size().
struct Tap {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Tap> taps_of(std::int64_t from, std::int64_t to) {
  const double factor = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(factor, 1.0);  // half width of the triangle, input pixels
  std::vector<Tap> taps(static_cast<std::size_t>(to));
  for (std::size_t o = 0; o < taps.size(); ++o) {
    const double centre = (static_cast<double>(o) + 0.5) * factor;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(centre + support + 0.5), from);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const double distance = std::abs((static_cast<double>(i) - centre + 0.5) * (1.0 / support));
      weights.push_back(std::max(1.0 - distance, 0.0));
      sum += weights.back();
    }
    taps[o].first = static_cast<std::size_t>(first);
    for (double weight : weights)
      taps[o].weights.push_back(
          static_cast<std::int32_t>(0.5 + (sum != 0 ? weight / sum : weight) * (1 << kFractionBits)));
  }
  return taps;
}

// Filters `lines` lines of pixels that lie `stride` apart. in: element of line l, position i, channel c is
// in[l * in_line + i * stride + c].
struct Layout {
  std::size_t lines, in_line, out_line, stride, channels;
};

void filter(const std::vector<Tap>& taps, const Layout& layout, const std::uint8_t* in, std::uint8_t* out) {
  for (std::size_t line = 0; line < layout.lines; ++line)
    for (std::size_t o = 0; o < taps.size(); ++o)
      for (std::size_t c = 0; c < layout.channels; ++c) {
        std::int64_t sum = std::int64_t{1} << (kFractionBits - 1);
        const std::uint8_t* pixel = in + line * layout.in_line + taps[o].first * layout.stride + c;
        for (std::int32_t weight : taps[o].weights) {
          sum += static_cast<std::int64_t>(weight) * *pixel;
          pixel += layout.stride;
        }
        out[line * layout.out_line + o * layout.stride + c] =
            static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kFractionBits, 0, 255));
      }
}

Image resize_width(const Image& image, std::int64_t width) {
  const auto channels = static_cast<std::size_t>(image.channels);
  Image out{image.height, width, image.channels, {}};
  out.pixels.resize(static_cast<std::size_t>(out.height * out.width) * channels);
  const Layout layout{static_cast<std::size_t>(image.height), static_cast<std::size_t>(image.width) * channels,
                      static_cast<std::size_t>(width) * channels, channels, channels};
  filter(taps_of(image.width, width), layout, image.pixels.data(), out.pixels.data());
  return out;
}

Image resize_height(const Image& image, std::int64_t height) {
  Image out{height, image.width, image.channels, {}};
  const std::size_t row = static_cast<std::size_t>(image.width * image.channels);
  out.pixels.resize(static_cast<std::size_t>(height) * row);
  // One line of `row` interleaved elements per position: every element of a row takes the same weights.
  filter(taps_of(image.height, height), {1, 0, 0, row, row}, image.pixels.data(), out.pixels.data());
  return out;
}

}  // namespace

Result<Image> resize_shorter(const Image& image, std::int64_t side, const std::string& where) {
  const std::int64_t shorter = std::min(image.height, image.width), longer = std::max(image.height, image.width);
  const std::int64_t length = side * longer / shorter;
  if (length > kMaxPixels / side)
    return input_error(where + ": resize: " + std::to_string(side) + " x " + std::to_string(length) +
                       " pixels are too many. Choose a smaller size.");
  const bool is_tall = image.height > image.width;
  const std::int64_t width = is_tall ? side : length, height = is_tall ? length : side;
  const Image wide = image.width == width ? image : resize_width(image, width);
  return wide.height == height ? wide : resize_height(wide, height);
}

Result<Image> crop_centre(const Image& image, std::int64_t side, const std::string& where) {
  if (image.height < side || image.width < side)
    return input_error(where + ": crop: expected an image of at least " + std::to_string(side) + " x " +
                       std::to_string(side) + " pixels, found " + std::to_string(image.height) + " x " +
                       std::to_string(image.width) + " (height x width). Set resize, or a smaller crop.");
  const auto margin = [&](std::int64_t length) {  // half of the rest; a half pixel goes to the even side
    const std::int64_t rest = length - side, half = rest / 2;
    return rest % 2 == 1 && half % 2 == 1 ? half + 1 : half;
  };
  const std::int64_t top = margin(image.height), left = margin(image.width);
  Image out{side, side, image.channels, {}};
  out.pixels.reserve(static_cast<std::size_t>(side * side * image.channels));
  for (std::int64_t y = top; y < top + side; ++y) {
    const auto row = image.pixels.begin() + (y * image.width + left) * image.channels;
    out.pixels.insert(out.pixels.end(), row, row + side * image.channels);
  }
  return out;
}

}  // namespace ctk::data
