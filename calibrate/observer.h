// Observers: how a range for affine uint8 is chosen from what was seen of a value. One row each in a visible table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "calibrate/histogram.h"
#include "core/result.h"

namespace ctk::calibrate {

struct ObserverOptions {
  std::string method = "minmax";  // a row of observers()
  double percentile = 99.99;      // of method "percentile": above 50, at most 100
};

// What was seen: at least two different values. `histogram` is null for one-pass observers.
struct Observed {
  Extent extent;
  const Histogram* histogram = nullptr;
};

struct Interval {
  double low = 0, high = 0;
};

struct Observer {
  std::string_view name;  // as in the pipeline file: calibrate.method
  std::string_view what;
  int passes;  // 1: extent alone; 2: a histogram over the first pass's extent
  // The range to quantize with; the caller widens it to hold 0. Deterministic, sums in double.
  Interval (*choose)(const Observed& observed, const ObserverOptions& options);
};

std::span<const Observer> observers();
// Errors: config (unknown name; lists those known).
Result<const Observer*> find_observer(std::string_view name);

Interval choose_minmax(const Observed& observed, const ObserverOptions& options);
Interval choose_percentile(const Observed& observed, const ObserverOptions& options);
Interval choose_entropy(const Observed& observed, const ObserverOptions& options);
Interval choose_mse(const Observed& observed, const ObserverOptions& options);

// The mean squared error of storing the histogram's bin centres as affine uint8 over [low, high] (widened to hold 0).
double expected_squared_error(const Histogram& histogram, Interval range);

}  // namespace ctk::calibrate
