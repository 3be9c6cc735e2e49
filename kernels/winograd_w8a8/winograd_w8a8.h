// winograd_w8a8: 3x3 convolution of stride 1 with 2.25 or 4 times fewer multiplications, and the same bits.
//
// Tile 2: four by four inputs give two by two outputs through 16 products of matrices (one for each place of the 4x4
// square). All in integers: inputs are transformed to at most 4 * 255 = 1020; weights with the transform times 2 on
// either side, so 4 times too large and at most 9 * 128 = 1152; both fit 16 bits. Sums wrap in 32 bits, which the last
// shift by 2 undoes as long as four times the true sum fits: channels <= 1024 keep it below 4 * 9 * 1024 * 255 * 128 <
// 2^31.
// Tile 4: six by six inputs give four by four outputs through 36 products. Inputs are transformed to at most 50 * 255 =
// 12750, weights with the transform times 24 on either side (its last row times 3: a shift makes up for it) to at most
// 12 * 12 * 128 = 18432. Sums are 576 = 9 * 64 times too large: the product with the inverse of 9 modulo 2^32 and a
// shift by 6 undo it as long as 64 times the true sum fits, which depends on the weights: fits() looks at them.
// Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015, F(2x2, 3x3) and F(4x4, 3x3).
// Differs: integer, exact.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"

namespace ctk::kernels {

constexpr std::size_t kWinogradMostChannels = 1024;

// A rectangle of output tiles, each `tile` by `tile` pixels.
struct WinogradBlock {
  std::size_t tile_rows = 0, tile_columns = 0, channels = 0;
  const std::int16_t* strip = nullptr;    // staged input of the first tile; 32 elements past it may be read
  std::size_t strip_row = 0;              // elements from one input row to the next; pixels `channels` apart
  std::size_t height = 0, width = 0;      // output pixels that exist: tile * tile_rows, tile_columns, or a few less
  const void* packed = nullptr;           // by the same row's pack()
  EpilogueInt epilogue;                   // for the first pixel, column 0
  void* c = nullptr;                      // uint8 or float32, pixels c_stride elements apart
  std::size_t c_stride = 0, c_width = 0;  // c_width: pixels from one output row to the next
  void* scratch = nullptr;
};

struct WinogradRow {
  const char* name;
  std::size_t tile;            // output pixels a side: 2 or 4
  std::size_t m_step, n_step;  // tiles and columns
  std::size_t (*packed_bytes)(std::size_t n, std::size_t channels);
  // Whether the sums of these weights come out exact.
  bool (*fits)(const std::int8_t* codes, std::size_t n, std::size_t channels);
  // codes: int8 [n, channels, 3, 3]. Columns lie in blocks of n_step, as those of GemmIntRow::pack() do.
  void (*pack)(const std::int8_t* codes, std::size_t n, std::size_t channels, void* packed);
  void (*stage)(const std::uint8_t* x, std::size_t count, void* staged);  // to int16
  std::size_t (*scratch_bytes)(std::size_t channels, std::size_t tiles);
  void (*run)(const WinogradBlock& block, std::size_t n_begin, std::size_t n_end);
};

}  // namespace ctk::kernels
