#include "kernels/npu/tiling.h"

#include <algorithm>
#include <optional>

#include "kernels/window_axis.h"

namespace ctk::kernels::npu {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPixelCuts = 5;  // tried for each number of outputs: the largest pieces that fit

std::size_t round_up(std::size_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

// n, then halves rounded up, down to `least` (or n itself where that is less).
std::vector<std::size_t> halves(std::size_t n, std::size_t least) {
  std::vector<std::size_t> out{n};
  while (out.back() > std::max<std::size_t>(least, 1)) out.push_back((out.back() + 1) / 2);
  return out;
}

// Pieces of an image, from the whole one: fewer rows, then parts of a row.
std::vector<std::pair<std::size_t, std::size_t>> pixel_cuts(const ConvShape& shape) {
  const auto height = static_cast<std::size_t>(shape.out_height), width = static_cast<std::size_t>(shape.out_width);
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t rows : halves(height, 1)) out.emplace_back(rows, width);
  for (std::size_t part : halves(width, 1)) {
    if (part != width) out.emplace_back(1, part);
  }
  return out;
}

bool fits(const Card& card, const Sizes& sizes, const Tile& tile) {
  return lay_out(sizes, tile).bytes <= card.scratchpad_bytes;
}

}  // namespace

std::size_t Sizes::outputs() const {
  return static_cast<std::size_t>(is_per_channel ? shape.out_channels : shape.outputs_per_group());
}
std::size_t Sizes::channels() const {
  return is_per_channel ? 1 : static_cast<std::size_t>(shape.channels_per_group());
}
std::size_t Sizes::groups() const {
  return is_per_channel ? 1 : static_cast<std::size_t>(shape.groups);
}
std::size_t Sizes::taps() const {
  return static_cast<std::size_t>(shape.kernel_height * shape.kernel_width);
}

Scratchpad lay_out(const Sizes& sizes, const Tile& tile) {
  Scratchpad s;
  const std::size_t pixels = tile.rows * tile.width;
  s.pixel = sizes.is_per_channel ? tile.outputs : tile.channels;
  s.line = static_cast<std::size_t>(width_axis(sizes.shape).span(static_cast<std::int64_t>(tile.width))) * s.pixel;
  s.strip_bytes =
      static_cast<std::size_t>(height_axis(sizes.shape).span(static_cast<std::int64_t>(tile.rows))) * s.line;
  const auto place = [&](std::size_t bytes) {
    const std::size_t at = s.bytes;
    s.bytes += round_up(bytes);
    return at;
  };
  const auto place_twice = [&](std::size_t(&at)[2], std::size_t bytes) {
    at[0] = place(bytes);
    at[1] = tile.buffers > 1 ? place(bytes) : at[0];
  };
  place_twice(s.weights, sizes.taps() * tile.channels * tile.outputs);
  place_twice(s.columns, tile.outputs * sizeof(Column));
  place_twice(s.strip, s.strip_bytes);
  place_twice(s.residual, sizes.adds_residual ? pixels * tile.outputs : 0);
  place_twice(s.output, pixels * tile.outputs * (sizes.to_float ? sizeof(float) : 1));
  s.sums = place(pixels * tile.outputs * sizeof(std::int32_t));
  return s;
}

Result<Tile> choose_tile(const Card& card, const Sizes& sizes,
                         const std::function<Result<std::uint64_t>(const Tile&)>& cycles) {
  const auto cuts = pixel_cuts(sizes.shape);
  std::optional<Tile> best;
  std::uint64_t least = 0;
  for (std::size_t outputs : halves(sizes.outputs(), card.array_columns)) {
    std::size_t tried = 0;
    for (const auto& [rows, width] : cuts) {
      const Tile tile{outputs, rows, width, sizes.channels(), 2};
      if (!fits(card, sizes, tile)) continue;
      CTK_TRY(const std::uint64_t takes, cycles(tile));
      if (!best || takes < least) {
        best = tile;
        least = takes;
      }
      if (++tried == kPixelCuts) break;
    }
  }
  if (best) return *best;
  Tile tile;
  for (std::size_t buffers : {2, 1}) {
    for (std::size_t channels : halves(sizes.channels(), 1)) {
      for (std::size_t outputs : halves(sizes.outputs(), 1)) {
        for (const auto& [rows, width] : cuts) {
          tile = {outputs, rows, width, channels, buffers};
          if (fits(card, sizes, tile)) return tile;
        }
      }
    }
  }
  const std::string taps = std::to_string(sizes.shape.kernel_height) + "x" + std::to_string(sizes.shape.kernel_width);
  return config_error(
      "\"" + card.name + "\": scratchpad: expected at least " + std::to_string(lay_out(sizes, tile).bytes) +
      " B for the smallest tile (one output of one pixel, " + "one channel of " + taps + " taps), found " +
      std::to_string(card.scratchpad_bytes) + " B. Give the card a larger scratchpad");
}

}  // namespace ctk::kernels::npu
