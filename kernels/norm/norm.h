// norm: normalization of rows of floats.
//
// Sums are taken in double, in eight parts (element i goes to part i mod 8) that are added in order at the end, so that
// every row of this table gives the same bits.
//   rms:    y[i] = x[i] * float(1 / sqrt(sum of x^2 / count + epsilon)) * scale[i], each product rounded
//   layer:  mean = sum of x / count, variance = sum of (x - mean)^2 / count by a second pass;
//           y[i] = float((x[i] - mean) * (1 / sqrt(variance + epsilon))) * scale[i] (+ shift[i])
// Zhang and Sennrich, 2019 (RMSNorm); Ba et al., 2016 (LayerNorm). y may be x.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu_isa.h"

namespace ctk::kernels {

struct Norm {
  std::size_t count = 0;         // elements of a row, at least 1
  double epsilon = 1e-5;         // above 0
  const float* scale = nullptr;  // [count]
  const float* shift = nullptr;  // [count] or null; of `layer`
};

struct NormRow {
  Isa isa;
  const char* name;
  void (*rms)(const Norm& norm, const float* x, float* y);
  void (*layer)(const Norm& norm, const float* x, float* y);
};

#define CTK_KERNEL(symbol) extern const NormRow symbol;
#include "kernels/norm/kernels.def"
#undef CTK_KERNEL

std::span<const NormRow> norm_rows();

// `rows` rows one behind the other, split over threads. By mean and variance where `centres`, else by mean square.
void normalize(const NormRow& row, const Norm& norm, bool centres, const float* x, float* y, std::size_t rows);

}  // namespace ctk::kernels
