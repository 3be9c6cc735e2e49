// Percentile p: cuts (100 - p) / 100 of the numbers off at each end that reaches away from zero. An end that stands at
// or on the far side of zero stays, since 0 must keep a code: for outputs of Relu only the upper end moves.
// Resolution: one bin. Source: the method of TensorRT's and ONNX Runtime's percentile calibration, made two-sided.
#include <algorithm>

#include "calibrate/observers/observer.h"

namespace ctk::calibrate {

Limits pick_percentile(const Histogram& histogram, const CalibrationOptions& options) {
  const double cut = (100.0 - options.percentile) / 100.0 * static_cast<double>(histogram.count);
  const std::size_t bins = histogram.bins.size();
  Limits limits{histogram.low, histogram.high};
  double passed = 0;
  for (std::size_t b = bins; b-- > 0;) {
    passed += static_cast<double>(histogram.bins[b]);
    if (passed > cut) {
      limits.high = histogram.low + static_cast<double>(b + 1) * histogram.bin_width();
      break;
    }
  }
  passed = 0;
  for (std::size_t b = 0; b < bins; ++b) {
    passed += static_cast<double>(histogram.bins[b]);
    if (passed > cut) {
      limits.low = histogram.low + static_cast<double>(b) * histogram.bin_width();
      break;
    }
  }
  if (histogram.low >= 0) limits.low = histogram.low;
  if (histogram.high <= 0) limits.high = histogram.high;
  limits.high = std::min(limits.high, static_cast<double>(histogram.high));
  limits.low = std::min(limits.low, limits.high);
  return limits;
}

}  // namespace ctk::calibrate
