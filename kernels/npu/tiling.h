// How a layer is cut so that a piece of everything it needs lies in the scratchpad. The seam for better tilings: what
// choose_tile() returns is all the compiler goes by.
#pragma once

#include <functional>

#include "kernels/conv_shape.h"
#include "kernels/npu/machine.h"

namespace ctk::kernels::npu {

// A layer as far as its sizes go.
struct Sizes {
  ConvShape shape;
  bool is_per_channel = false;  // one filter a channel; else dense in groups
  bool adds_residual = false, to_float = false;

  std::size_t outputs() const;   // that tiles divide: a group's, or all channels
  std::size_t channels() const;  // of a tap that tiles divide: 1 where it is per channel
  std::size_t groups() const;    // computed one after the other
  std::size_t taps() const;
};

struct Tile {
  std::size_t outputs = 1, rows = 1, width = 1, channels = 1;
  std::size_t buffers = 2;  // of what is moved: 2 lets the next piece come in while this one is computed
};

// Addresses of the pieces; those that are moved have a second one where the tile has two buffers.
struct Scratchpad {
  std::size_t weights[2], columns[2], strip[2], residual[2], output[2], sums = 0, bytes = 0;
  std::size_t pixel = 0, line = 0, strip_bytes = 0;  // of a strip: bytes from pixel to pixel, row to row, in all
};
Scratchpad lay_out(const Sizes& sizes, const Tile& tile);

// The quickest by `cycles` among tiles that halve outputs and pixels; whole sums and two buffers where any such tile
// fits, else the largest tile that does. Ties: the first, in order of fewer cuts.
// Errors: config (not even the smallest tile fits: says what it needs); those of `cycles`.
Result<Tile> choose_tile(const Card& card, const Sizes& sizes,
                         const std::function<Result<std::uint64_t>(const Tile&)>& cycles);

}  // namespace ctk::kernels::npu
