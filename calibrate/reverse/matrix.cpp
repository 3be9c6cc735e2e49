#include "calibrate/reverse/matrix.h"

#include <algorithm>

#include "calibrate/packed_matrix.h"
#include "core/parallel.h"

namespace ctk::calibrate {

void add_product(const float* a, const float* b, std::size_t m, std::size_t n, std::size_t k, float* c) {
  if (m == 0 || n == 0 || k == 0) return;
  // Columns in blocks, so that packing is shared out as well.
  constexpr std::size_t kColumns = 192;
  parallel_for((n + kColumns - 1) / kColumns, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const std::size_t first = block * kColumns, count = std::min(kColumns, n - first);
      PackedMatrix packed(count, k);
      packed.pack(b + first * k);
      packed.multiply(a, k, m, c + first, n, true);
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
