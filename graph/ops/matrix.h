// The one matrix product behind Gemm and MatMul: plain, in a fixed order, without allocation.
#pragma once

#include <cstddef>

#include "core/lane_sums.h"

namespace ctk::graph {

// Element (m, k) of A lies at a[m * row_stride + k * column_stride].
struct MatrixA {
  const float* data = nullptr;
  std::size_t row_stride = 0;
  std::size_t column_stride = 1;
};

// out[m * columns + n] = sum over k of A(m, k) * B(k, n), summed over k upwards for a row-major B [depth, columns], and
// in eight interleaved partial sums (k mod 8) added in order for a transposed B [columns, depth].
inline void multiply(std::size_t rows, std::size_t columns, std::size_t depth, const MatrixA& a, const float* b,
                     bool is_b_transposed, float* out) {
  constexpr std::size_t kLanes = 8;
  for (std::size_t m = 0; m < rows; ++m) {
    const float* a_row = a.data + m * a.row_stride;
    float* out_row = out + m * columns;
    if (!is_b_transposed) {
      for (std::size_t n = 0; n < columns; ++n) out_row[n] = 0.0f;
      for (std::size_t k = 0; k < depth; ++k) {
        const float factor = a_row[k * a.column_stride];
        const float* b_row = b + k * columns;
        for (std::size_t n = 0; n < columns; ++n) out_row[n] += factor * b_row[n];
      }
      continue;
    }
    for (std::size_t n = 0; n < columns; ++n) {
      const float* b_row = b + n * depth;
      if (a.column_stride == 1) {
        out_row[n] = dot(a_row, b_row, depth);
        continue;
      }
      float lanes[kLanes] = {};
      for (std::size_t k = 0; k < depth; ++k) lanes[k % kLanes] += a_row[k * a.column_stride] * b_row[k];
      float sum = 0.0f;
      for (float lane : lanes) sum += lane;
      out_row[n] = sum;
    }
  }
}

}  // namespace ctk::graph
