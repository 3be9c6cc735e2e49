// Transposes in blocks, for ISA sources: plain loops at the edges and for the few channels of a picture, where a block
// would be mostly edge. A block is a type with
//   kSize                               its rows and columns
//   turn(x, x_stride, y, y_stride)      kSize rows of x -> kSize columns of y
// Everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstring>

namespace ctk::kernels {
namespace {

template <class T>
void transpose_plain(const T* x, T* y, std::size_t rows, std::size_t columns, std::size_t row_begin,
                     std::size_t row_end, std::size_t column_begin, std::size_t column_end) {
  for (std::size_t c = column_begin; c < column_end; ++c) {
    for (std::size_t r = row_begin; r < row_end; ++r) y[c * rows + r] = x[r * columns + c];
  }
}

template <class T, std::size_t R>
void transpose_few_rows(const T* x, T* y, std::size_t columns) {
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < R; ++r) y[c * R + r] = x[r * columns + c];
  }
}

template <class T, std::size_t C>
void transpose_few_columns(const T* x, T* y, std::size_t rows) {
  for (std::size_t c = 0; c < C; ++c) {
    for (std::size_t r = 0; r < rows; ++r) y[c * rows + r] = x[r * C + c];
  }
}

// [rows, columns] -> [columns, rows].
template <class Block, class T>
void transpose(const T* x, T* y, std::size_t rows, std::size_t columns) {
  if (rows == 1 || columns == 1) {
    if (rows * columns != 0) std::memcpy(y, x, rows * columns * sizeof(T));
    return;
  }
  switch (rows) {
    case 2:
      return transpose_few_rows<T, 2>(x, y, columns);
    case 3:
      return transpose_few_rows<T, 3>(x, y, columns);
    case 4:
      return transpose_few_rows<T, 4>(x, y, columns);
    default:
      break;
  }
  switch (columns) {
    case 2:
      return transpose_few_columns<T, 2>(x, y, rows);
    case 3:
      return transpose_few_columns<T, 3>(x, y, rows);
    case 4:
      return transpose_few_columns<T, 4>(x, y, rows);
    default:
      break;
  }
  const std::size_t whole_rows = rows / Block::kSize * Block::kSize,
                    whole_columns = columns / Block::kSize * Block::kSize;
  for (std::size_t c = 0; c < whole_columns; c += Block::kSize) {
    for (std::size_t r = 0; r < whole_rows; r += Block::kSize) {
      Block::turn(x + r * columns + c, columns, y + c * rows + r, rows);
    }
  }
  transpose_plain(x, y, rows, columns, whole_rows, rows, 0, columns);
  transpose_plain(x, y, rows, columns, 0, whole_rows, whole_columns, columns);
}

}  // namespace
}  // namespace ctk::kernels
