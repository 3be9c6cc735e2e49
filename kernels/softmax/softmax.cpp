// softmax: scalar reference, table of rows, split over threads.
#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <limits>

#include "core/exp_negative.h"
#include "core/lane_sums.h"
#include "core/parallel.h"

namespace ctk::kernels {
namespace {

constexpr std::size_t kGrainElements = 2048;

void run(const float* x, float* y, std::size_t count) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  for (std::size_t i = 0; i < count; ++i) y[i] = exp_negative(x[i] - largest);
  const auto factor = static_cast<float>(1.0 / lane_sum(y, count, [](double v) { return v; }));
  for (std::size_t i = 0; i < count; ++i) y[i] *= factor;
}

}  // namespace

const SoftmaxRow softmax_scalar = {Isa::scalar, "softmax_scalar", run};

std::span<const SoftmaxRow> softmax_rows() {
  static const SoftmaxRow rows[] = {
#define CTK_KERNEL(symbol) symbol,
#include "kernels/softmax/kernels.def"
#undef CTK_KERNEL
  };
  return rows;
}

void softmax(const SoftmaxRow& row, const float* x, float* y, std::size_t rows, std::size_t count) {
  parallel_for(rows, std::max<std::size_t>(1, kGrainElements / count), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) row.run(x + i * count, y + i * count, count);
  });
}

}  // namespace ctk::kernels
