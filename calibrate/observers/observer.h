// Observers: how a range is chosen from what was seen. The visible table.
#pragma once

#include <span>
#include <string_view>

#include "calibrate/calibration.h"

namespace ctk::calibrate {

struct Limits {
  double low = 0, high = 0;
};

struct Observer {
  std::string_view name;
  std::string_view what;
  int passes;   // 2: needs the histogram
  // Called with count > 0 and low < high. Must return finite limits with low <= high.
  Limits (*pick)(const Histogram& histogram, const CalibrationOptions& options);
};

std::span<const Observer> observers();

Limits pick_minmax(const Histogram& histogram, const CalibrationOptions& options);
Limits pick_percentile(const Histogram& histogram, const CalibrationOptions& options);
Limits pick_entropy(const Histogram& histogram, const CalibrationOptions& options);
Limits pick_mse(const Histogram& histogram, const CalibrationOptions& options);

// Mean squared error of storing the histogram's numbers (at bin centres) as affine uint8 over [low, high].
double expected_error(const Histogram& histogram, double low, double high);

}  // namespace ctk::calibrate
