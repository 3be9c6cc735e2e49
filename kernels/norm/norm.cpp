// norm: scalar reference, table of rows, split over threads.
#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "core/lane_sums.h"
#include "core/parallel.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kGrainElements = 4096;

void rms(const Norm& n, const float* x, float* y) {
  const double mean = sum_of_squares(x, n.count) / static_cast<double>(n.count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + n.epsilon));
  for (std::size_t i = 0; i < n.count; ++i) y[i] = x[i] * inverse * n.scale[i];
}

void layer(const Norm& n, const float* x, float* y) {
  const auto [mean, inverse] = row_statistics(x, n.count, n.epsilon);
  for (std::size_t i = 0; i < n.count; ++i) {
    const float scaled = static_cast<float>((static_cast<double>(x[i]) - mean) * inverse) * n.scale[i];
    y[i] = n.shift != nullptr ? scaled + n.shift[i] : scaled;
  }
}

}  // namespace

const NormRow norm_scalar = {Isa::scalar, "norm_scalar", rms, layer};

std::span<const NormRow> norm_rows() {
  static const NormRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/norm/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void normalize(const NormRow& row, const Norm& norm, bool centres, const float* x, float* y, std::size_t rows) {
  const auto one = centres ? row.layer : row.rms;
  parallel_for(rows, std::max<std::size_t>(1, kGrainElements / norm.count), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) one(norm, x + i * norm.count, y + i * norm.count);
  });
}

}  // namespace ctk::kernels
