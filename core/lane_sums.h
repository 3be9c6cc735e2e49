// Sums over a row, in eight parts that are added in order at the end: a fixed order that the compiler can still make
// vectors of. Whoever must have the same bits (an operator, its step, its gradient) takes the same sum.
#pragma once

#include <cmath>
#include <cstddef>

namespace ctk {

// Of f(x[i]), in double.
template <class F>
inline double lane_sum(const float* x, std::size_t count, const F& f) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(static_cast<double>(x[i + lane]));
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) lanes[lane] += f(static_cast<double>(x[i]));
  double sum = 0.0;
  for (double lane : lanes) sum += lane;
  return sum;
}

// What LayerNormalization takes from a row: the mean, and 1 / sqrt(variance + epsilon), the variance by a second pass.
struct RowStatistics {
  double mean, inverse;
};
inline RowStatistics row_statistics(const float* x, std::size_t count, double epsilon) {
  const auto size = static_cast<double>(count);
  const double mean = lane_sum(x, count, [](double v) { return v; }) / size;
  const double squares = lane_sum(x, count, [mean](double v) { return (v - mean) * (v - mean); });
  return {mean, 1.0 / std::sqrt(squares / size + epsilon)};
}

// In double.
inline double sum_of_squares(const float* x, std::size_t count) {
  return lane_sum(x, count, [](double v) { return v * v; });
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

}  // namespace ctk
