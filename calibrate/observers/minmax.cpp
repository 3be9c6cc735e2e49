// Min-max: the extremes themselves. Nothing is clipped; one outlier sets the step for all.
#include "calibrate/observers/observer.h"

namespace ctk::calibrate {

Limits pick_minmax(const Histogram& histogram, const CalibrationOptions&) { return {histogram.low, histogram.high}; }

}  // namespace ctk::calibrate
