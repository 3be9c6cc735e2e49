#include "kernels/conv_w8a8/conv_winograd.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "kernels/conv_w8a8/strip.h"
#include "kernels/requantize.h"
#include "kernels/winograd_w8a8/winograd_w8a8.h"

namespace ctk::kernels {
namespace {

// Transformed inputs and one panel's sums stay in the second-level cache beside the panel's weights. Weights too large
// for that cache are read from afar once a block: blocks are then larger and fewer.
constexpr std::size_t kScratchBytes = 160 << 10, kLargeScratchBytes = 352 << 10, kSmallWeightBytes = 256 << 10;
constexpr std::int64_t kMostTiles = 48;
constexpr std::size_t kMostLargeWeightBytes = 1536 << 10, kHeaderBytes = 64;
constexpr std::int64_t kLeastLargeTiles = 16;  // below, twice the memory for weights is not worth the time
constexpr std::size_t kSlack = 32;             // elements
constexpr std::size_t kTaps = 9;

std::size_t size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}
std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

Staging staging_of(const WinogradRow& winograd) {
  return {winograd.stage, sizeof(std::int16_t)};
}

std::int64_t tiles_of(const ConvShape& s, std::int64_t tile) {
  return s.batch * ceil_div(s.out_height, tile) * ceil_div(s.out_width, tile);
}

// Products per input and output channel; also what transformed weights of one such pair take, in elements.
std::int64_t places_of(const WinogradRow& winograd) {
  return static_cast<std::int64_t>((winograd.tile + 2) * (winograd.tile + 2));
}

std::size_t weight_bytes(const WinogradRow& winograd, const ConvShape& s) {
  return size(places_of(winograd) * 2 * s.in_channels * s.out_channels);
}

// The larger tiles where they save products, borders included, and their weights are no burden for the caches. Whether
// the weights fit them shows when they are packed: their first bytes say so.
const WinogradRow* large_of(const GemmIntRow& row, const ConvShape& s) {
  const WinogradRow* large = row.winograd_large;
  if (large == nullptr || weight_bytes(*large, s) > kMostLargeWeightBytes) return nullptr;
  const std::int64_t tiles = tiles_of(s, static_cast<std::int64_t>(large->tile));
  const std::int64_t small = tiles_of(s, static_cast<std::int64_t>(row.winograd->tile)) * places_of(*row.winograd);
  return tiles >= kLeastLargeTiles && 5 * tiles * places_of(*large) <= 4 * small ? large : nullptr;
}

struct Packed {
  const WinogradRow& winograd;
  const void* weights;
};

Packed packed_of(const GemmIntRow& row, const ConvShape& s, const void* packed) {
  const WinogradRow* large = large_of(row, s);
  if (large == nullptr) return {*row.winograd, packed};
  const char* bytes = static_cast<const char*>(packed);
  return {bytes[0] != 0 ? *large : *row.winograd, bytes + kHeaderBytes};
}

// Tiles of one block: some full rows of tiles, or a stretch of one row.
struct Tiles {
  std::int64_t rows = 1, columns = 1;
};

Tiles block_of(const WinogradRow& winograd, const ConvShape& s) {
  const std::int64_t tile = static_cast<std::int64_t>(winograd.tile);
  const std::int64_t width = ceil_div(s.out_width, tile), height = ceil_div(s.out_height, tile);
  const bool is_small = weight_bytes(winograd, s) <= kSmallWeightBytes;
  const std::size_t bytes = is_small ? kScratchBytes : kLargeScratchBytes;
  std::int64_t most = static_cast<std::int64_t>(winograd.m_step);
  while (most < kMostTiles && winograd.scratch_bytes(size(s.in_channels), size(most + 1)) <= bytes) ++most;
  if (width > most) return {1, most};
  return {std::min(height, most / width), width};
}

std::size_t strip_bytes_of(const WinogradRow& winograd, const ConvShape& s, const Tiles& t) {
  const std::int64_t tile = static_cast<std::int64_t>(winograd.tile);
  return round_up(Strip(staging_of(winograd), s, true, kSlack).bytes(tile * t.rows, tile * t.columns), 64);
}

std::size_t scratch_bytes_of(const WinogradRow& winograd, const ConvShape& s) {
  const Tiles t = block_of(winograd, s);
  return strip_bytes_of(winograd, s, t) +
         round_up(winograd.scratch_bytes(size(s.in_channels), size(t.rows * t.columns)), 64);
}

struct Job {
  const WinogradRow& winograd;
  const ConvShape& shape;
  Strip strip;
  Tiles block;
  std::size_t strip_bytes;
  const void* packed;
  const std::uint8_t* x;
  std::uint8_t x_zero_point;
  const EpilogueInt& epilogue;
  void* y;

  // Tiles [row, row + t.rows) x [column, column + t.columns) of one image.
  void run(std::int64_t image, std::int64_t tile_row, std::int64_t tile_column, const Tiles& t, std::size_t n_begin,
           std::size_t n_end, char* scratch) const {
    const std::int64_t tile = static_cast<std::int64_t>(winograd.tile);
    const OutputBlock out{image, tile * tile_row, tile * tile_column, tile * t.rows, tile * t.columns};
    strip.stage(out, x, x_zero_point, scratch);
    WinogradBlock b;
    b.tile_rows = size(t.rows);
    b.tile_columns = size(t.columns);
    b.channels = size(shape.in_channels);
    b.strip = reinterpret_cast<const std::int16_t*>(scratch);
    b.strip_row = strip.row_bytes(out.width) / strip.staging.element_bytes;
    b.height = size(std::min(out.height, shape.out_height - out.y));
    b.width = size(std::min(out.width, shape.out_width - out.x));
    b.packed = packed;
    b.c_stride = size(shape.out_channels);
    b.c_width = size(shape.out_width);
    const std::size_t first = size((image * shape.out_height + out.y) * shape.out_width + out.x);
    b.epilogue = epilogue_from(epilogue, first, 0);
    b.c = output_from(epilogue, y, first * b.c_stride);
    b.scratch = scratch + strip_bytes;
    winograd.run(b, n_begin, n_end);
  }
};

void pack_columns(const WinogradRow& winograd, const std::int8_t* codes, std::size_t n, std::size_t channels,
                  char* packed) {
  parallel_for(n, winograd.n_step, [&](std::size_t begin, std::size_t end) {
    winograd.pack(codes + begin * channels * kTaps, end - begin, channels,
                  packed + winograd.packed_bytes(begin, channels));
  });
}

}  // namespace

bool takes_winograd(const GemmIntRow& row, const ConvShape& s) {
  const bool fits = row.winograd != nullptr && !s.is_transposed && s.groups == 1 && s.kernel_height == 3 &&
                    s.kernel_width == 3 && s.stride_height == 1 && s.stride_width == 1 && s.dilation_height == 1 &&
                    s.dilation_width == 1 && size(s.in_channels) <= kWinogradMostChannels;
  if (!fits || size(s.in_channels) < row.winograd_channels) return false;
  if (row.winograd_needs_large) {
    // Nor may tiles reach far beyond the borders.
    const WinogradRow* large = large_of(row, s);
    if (large == nullptr) return false;
    const std::int64_t tile = static_cast<std::int64_t>(large->tile);
    return 10 * tiles_of(s, tile) * tile * tile <= 11 * s.pixels();
  }
  // Transformed weights are 3.6 times as large: they must be met often, or stay in the second-level cache.
  const std::int64_t tiles = tiles_of(s, static_cast<std::int64_t>(row.winograd->tile));
  return tiles >= 32 || (tiles >= 4 && weight_bytes(*row.winograd, s) <= 2 * kSmallWeightBytes);
}

std::size_t conv_winograd_packed_bytes(const GemmIntRow& row, const ConvShape& s) {
  const std::size_t bytes = row.winograd->packed_bytes(size(s.out_channels), size(s.in_channels));
  const WinogradRow* large = large_of(row, s);
  if (large == nullptr) return bytes;
  return kHeaderBytes + std::max(bytes, large->packed_bytes(size(s.out_channels), size(s.in_channels)));
}

void conv_winograd_pack(const GemmIntRow& row, const ConvShape& s, const std::int8_t* codes, void* packed) {
  const std::size_t n = size(s.out_channels), channels = size(s.in_channels);
  const WinogradRow* large = large_of(row, s);
  if (large == nullptr) return pack_columns(*row.winograd, codes, n, channels, static_cast<char*>(packed));
  const bool fits = large->fits(codes, n, channels);
  char* bytes = static_cast<char*>(packed);
  std::memset(bytes, 0, kHeaderBytes);
  bytes[0] = fits ? 1 : 0;
  pack_columns(fits ? *large : *row.winograd, codes, n, channels, bytes + kHeaderBytes);
}

std::size_t conv_winograd_scratch_bytes(const GemmIntRow& row, const ConvShape& s) {
  const WinogradRow* large = large_of(row, s);
  const std::size_t bytes = scratch_bytes_of(*row.winograd, s);
  return large == nullptr ? bytes : std::max(bytes, scratch_bytes_of(*large, s));
}

void conv_winograd(const GemmIntRow& row, const ConvShape& s, const void* packed, const std::uint8_t* x,
                   std::uint8_t x_zero_point, const EpilogueInt& epilogue, void* y, void* scratch) {
  const auto [winograd, weights] = packed_of(row, s, packed);
  const Tiles block = block_of(winograd, s);
  const Job job{winograd,
                s,
                Strip(staging_of(winograd), s, true, kSlack),
                block,
                strip_bytes_of(winograd, s, block),
                weights,
                x,
                x_zero_point,
                epilogue,
                y};
  const std::size_t per_thread = conv_winograd_scratch_bytes(row, s), n = size(s.out_channels);
  const std::int64_t tile = static_cast<std::int64_t>(winograd.tile);
  const std::int64_t height = ceil_div(s.out_height, tile), width = ceil_div(s.out_width, tile);
  const std::int64_t team = threads(), stretches = ceil_div(width, block.columns), lines = s.batch * height;

  // Units: rows of tiles, or stretches of them; each thread joins neighbouring rows into blocks.
  const auto run_units = [&](std::int64_t begin, std::int64_t end, std::size_t n_begin, std::size_t n_end) {
    char* own = static_cast<char*>(scratch) + size(thread_index()) * per_thread;
    while (begin < end) {
      const std::int64_t line = begin / stretches, image = line / height, y0 = line % height;
      if (stretches > 1) {
        const std::int64_t x0 = begin % stretches * block.columns;
        job.run(image, y0, x0, {1, std::min(block.columns, width - x0)}, n_begin, n_end, own);
        ++begin;
        continue;
      }
      const std::int64_t left = std::min(end - begin, height - y0);
      const std::int64_t rows = ceil_div(left, ceil_div(left, block.rows));
      job.run(image, y0, 0, {rows, width}, n_begin, n_end, own);
      begin += rows;
    }
  };
  const std::int64_t units = lines * stretches;
  // Few tiles: threads share them and divide the output channels, though each transforms all inputs then.
  if (team > 1 && n >= 2 * winograd.n_step && lines < 3 * team &&
      lines * width < 4 * team * static_cast<std::int64_t>(winograd.m_step)) {
    return parallel_for(n, winograd.n_step,
                        [&](std::size_t begin, std::size_t end) { run_units(0, units, begin, end); });
  }
  parallel_for(size(units), 1, [&](std::size_t begin, std::size_t end) {
    run_units(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), 0, n);
  });
}

}  // namespace ctk::kernels
