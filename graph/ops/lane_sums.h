// Sums over a row, in eight parts that are added in order at the end: a fixed order that the compiler can still make
// vectors of. Whoever must have the same bits (an operator, its step, its gradient) takes the same sum.
#pragma once

#include <cstddef>

namespace ctk::graph {

// In double.
inline double sum_of_squares(const float* x, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += static_cast<double>(x[i]) * x[i];
  double sum = 0.0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// In float.
inline float dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += a[i] * b[i];
  float sum = 0.0f;
  for (float lane : lanes) sum += lane;
  return sum;
}

}  // namespace ctk::graph
