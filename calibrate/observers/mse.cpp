// MSE: the range [low, high] of affine uint8 codes that minimises E (x - dequantize(quantize(x)))^2 over the histogram.
// In:  histogram of one value. Out: limits within its extremes (0 included by the caller).
// Cost: some 400 passes over the bins. Source: Choukroun et al., Low-bit Quantization of Neural Networks for Efficient
// Inference (OMSE), 2019. Differs: both ends are searched (coarse grid, then finer around the best); never worse than
// min-max, which is a candidate.
#include <algorithm>
#include <cmath>

#include "calibrate/observers/observer.h"

namespace ctk::calibrate {

double expected_error(const Histogram& histogram, double low, double high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  const double scale = (high - low) / 255.0;
  if (!(scale > 0)) return 0;
  const double zero = std::nearbyint(-low / scale);
  double error = 0;
  const double width = histogram.bin_width();
  for (std::size_t b = 0; b < histogram.bins.size(); ++b) {
    if (histogram.bins[b] == 0) continue;
    const double x = static_cast<double>(histogram.low) + (static_cast<double>(b) + 0.5) * width;
    const double code = std::clamp(std::nearbyint(x / scale) + zero, 0.0, 255.0);
    const double miss = x - (code - zero) * scale;
    error += static_cast<double>(histogram.bins[b]) * miss * miss;
  }
  return error / static_cast<double>(histogram.count);
}

Limits pick_mse(const Histogram& histogram, const CalibrationOptions&) {
  const double low = histogram.low, high = histogram.high;
  Limits best{low, high};
  double best_error = expected_error(histogram, low, high);
  const auto consider = [&](double from, double to) {
    const double error = expected_error(histogram, from, to);
    if (error < best_error) {
      best_error = error;
      best = {from, to};
    }
  };
  const bool moves_low = low < 0, moves_high = high > 0;
  const int coarse = 16;
  for (int i = 1; i <= coarse; ++i) {
    for (int j = 1; j <= coarse; ++j) {
      if ((!moves_low && i < coarse) || (!moves_high && j < coarse)) continue;
      consider(moves_low ? low * i / coarse : low, moves_high ? high * j / coarse : high);
    }
  }
  double step_low = low / coarse, step_high = high / coarse;
  for (int round = 0; round < 2; ++round) {
    const Limits center = best;
    for (int i = -4; i <= 4; ++i) {
      for (int j = -4; j <= 4; ++j) {
        if ((!moves_low && i != 0) || (!moves_high && j != 0)) continue;
        const double from = moves_low ? std::clamp(center.low + step_low * i / 5, low, 0.0) : low;
        const double to = moves_high ? std::clamp(center.high + step_high * j / 5, 0.0, high) : high;
        if (to > from) consider(from, to);
      }
    }
    step_low /= 5;
    step_high /= 5;
  }
  return best;
}

}  // namespace ctk::calibrate
