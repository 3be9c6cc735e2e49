// The sum that RMSNormalization takes of a row, for its float evaluation and for its step: the same bits in both.
#pragma once

#include <cstddef>

namespace ctk::graph {

// In double, eight sums side by side, added in order at the end.
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

}  // namespace ctk::graph
