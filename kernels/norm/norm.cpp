// norm: scalar reference, table of rows, split over threads.
#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kLanes = 8, kGrainElements = 4096;

template <class F>
double lane_sum(const float* x, std::size_t count, const F& f) {
  double lanes[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] += f(static_cast<double>(x[i]));
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

void rms(const Norm& n, const float* x, float* y) {
  const double mean = lane_sum(x, n.count, [](double v) { return v * v; }) / static_cast<double>(n.count);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + n.epsilon));
  for (std::size_t i = 0; i < n.count; ++i) y[i] = x[i] * inverse * n.scale[i];
}

void layer(const Norm& n, const float* x, float* y) {
  const auto size = static_cast<double>(n.count);
  const double mean = lane_sum(x, n.count, [](double v) { return v; }) / size;
  const double squares = lane_sum(x, n.count, [mean](double v) { return (v - mean) * (v - mean); });
  const double inverse = 1.0 / std::sqrt(squares / size + n.epsilon);
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
