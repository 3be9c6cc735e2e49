// Min-max: the whole range that was seen. Minimises clipping (none on the calibration data).
// In:  the extent of all elements. Out: the same.
// Cost: one pass, nothing to choose. Source: folklore. No departure.
#include "calibrate/observer.h"

namespace ctk::calibrate {

Interval choose_minmax(const Observed& observed, const ObserverOptions&) {
  return {observed.extent.low, observed.extent.high};
}

}  // namespace ctk::calibrate
