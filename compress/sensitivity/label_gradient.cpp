#include "compress/sensitivity/label_gradient.h"

#include <cmath>
#include <vector>

#include "core/parallel.h"

namespace ctk::pipeline {

Result<LabelGradient> draw_label_gradient(const Tensor& output, Random& random) {
  const Shape& shape = output.shape();
  if (shape.size() < 2 || output.size() == 0 || output.dtype() != DType::f32) {
    return input_error("output: expected float32 of shape [samples, classes, ...], found " + to_string(shape) +
                       ". Choose an output that has one row for each sample.");
  }
  LabelGradient result;
  const bool class_last = shape.size() <= 3;
  const auto classes = static_cast<std::size_t>(class_last ? shape.back() : shape[1]);
  result.rows = output.size() / classes;
  const std::size_t pixels = class_last ? 1 : result.rows / static_cast<std::size_t>(shape[0]);
  CTK_TRY(result.gradient, Tensor::zeros(DType::f32, shape));
  std::vector<double> draws(result.rows);
  for (double& draw : draws) draw = random.uniform();
  const float* x = output.values<float>().data();
  float* g = result.gradient.mutable_values<float>().data();
  std::vector<char> is_finite(result.rows, 1);
  parallel_for(result.rows, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t first = row / pixels * pixels * classes + row % pixels;
      float largest = x[first];
      for (std::size_t k = 1; k < classes; ++k) largest = std::max(largest, x[first + k * pixels]);
      double sum = 0;
      for (std::size_t k = 0; k < classes; ++k) {
        const float power = std::exp(x[first + k * pixels] - largest);
        g[first + k * pixels] = power;
        sum += static_cast<double>(power);
      }
      is_finite[row] = std::isfinite(sum);
      const double wanted = draws[row] * sum;
      double running = 0;
      std::size_t label = 0;  // the first whose running sum passes the draw, of those with a chance
      for (std::size_t k = 0; k < classes; ++k) {
        const auto power = static_cast<double>(g[first + k * pixels]);
        if (running <= wanted && power > 0) label = k;
        running += power;
        g[first + k * pixels] = static_cast<float>(power / sum);
      }
      g[first + label * pixels] -= 1.0f;
    }
  });
  for (std::size_t row = 0; row < result.rows; ++row) {
    if (is_finite[row]) continue;
    return input_error("output: expected finite numbers, found others in row " + std::to_string(row) +
                       ". Look for the layer that overflows.");
  }
  return result;
}

}  // namespace ctk::pipeline
