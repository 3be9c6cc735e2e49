// Percentile: clips a fixed share of the elements at each end.
// In:  histogram of n elements. Out: the narrowest range of whole bins that leaves at most
//      floor(n * (1 - percentile / 100)) elements outside at either end. 0 is always inside.
// Cost: O(bins). Source: Wu et al., Integer Quantization for Deep Learning Inference, 2020, section 5.
// Differs: both tails instead of |x|, as codes are affine; edges of bins, so at most a bin (1/2048 of the extent) wider
// than the exact quantile and never narrower.
#include <cmath>

#include "calibrate/observer.h"

namespace ctk::calibrate {

Interval choose_percentile(const Observed& observed, const ObserverOptions& options) {
  const Histogram& histogram = *observed.histogram;
  const double share = (100.0 - options.percentile) / 100.0;
  // The small addend keeps a share like 0.1 of 10 elements from rounding down to none.
  const double most = std::floor(share * static_cast<double>(histogram.total()) + 1e-6);
  const auto allowed = static_cast<std::uint64_t>(most);
  std::size_t first = 0, end = Histogram::kBins;
  for (std::uint64_t outside = 0; end > 1 && histogram.edge(end - 1) > 0; --end) {
    outside += histogram.count(end - 1);
    if (outside > allowed) break;
  }
  for (std::uint64_t outside = 0; first + 1 < end && histogram.edge(first + 1) < 0; ++first) {
    outside += histogram.count(first);
    if (outside > allowed) break;
  }
  return {histogram.edge(first), histogram.edge(end)};
}

}  // namespace ctk::calibrate
