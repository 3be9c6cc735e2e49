#include "calibrate/reverse/matrix.h"

#include <algorithm>
#include <memory>

#include "calibrate/packed_matrix.h"
#include "core/parallel.h"

namespace ctk::calibrate {

void add_product(const float* a, const float* b, std::size_t m, std::size_t n, std::size_t k, float* c) {
  if (m == 0 || n == 0 || k == 0) return;
  constexpr std::size_t kColumns = 192, kRows = 192;
  const std::size_t column_blocks = (n + kColumns - 1) / kColumns, row_blocks = (m + kRows - 1) / kRows;
  std::vector<std::unique_ptr<PackedMatrix>> packed(column_blocks);
  parallel_for(column_blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      packed[block] = std::make_unique<PackedMatrix>(std::min(kColumns, n - block * kColumns), k);
      packed[block]->pack(b + block * kColumns * k);
    }
  });
  parallel_for(column_blocks * row_blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t work = begin; work < end; ++work) {
      const std::size_t column = work / row_blocks, row = work % row_blocks * kRows;
      packed[column]->multiply(a + row * k, k, std::min(kRows, m - row), c + row * n + column * kColumns, n, true);
    }
  });
}

std::vector<float> transposed(const float* from, std::size_t rows, std::size_t columns) {
  std::vector<float> to(rows * columns);
  constexpr std::size_t kTile = 16;
  parallel_for((columns + kTile - 1) / kTile, 8, [&](std::size_t begin, std::size_t end) {
    for (std::size_t tile = begin; tile < end; ++tile) {
      const std::size_t first = tile * kTile, last = std::min(columns, first + kTile);
      for (std::size_t top = 0; top < rows; top += kTile) {
        const std::size_t bottom = std::min(rows, top + kTile);
        for (std::size_t j = first; j < last; ++j) {
          for (std::size_t i = top; i < bottom; ++i) to[j * rows + i] = from[i * columns + j];
        }
      }
    }
  });
  return to;
}

}  // namespace ctk::calibrate
