#include "calibrate/histogram.h"

#include <algorithm>
#include <cmath>

namespace ctk::calibrate {

bool Histogram::extend(std::span<const float> data) {
  if (data.empty()) return true;
  // Eight lanes so that the compiler vectorizes. x * 0 is 0 for finite numbers and NaN for all others.
  constexpr std::size_t kLanes = 8;
  float lowest[kLanes], highest[kLanes], poison[kLanes];
  std::fill_n(lowest, kLanes, data[0]);
  std::fill_n(highest, kLanes, data[0]);
  std::fill_n(poison, kLanes, 0.0f);
  const std::size_t whole = data.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const float v = data[i + k];
      lowest[k] = v < lowest[k] ? v : lowest[k];
      highest[k] = v > highest[k] ? v : highest[k];
      poison[k] += v * 0.0f;
    }
  }
  float lo = *std::min_element(lowest, lowest + kLanes), hi = *std::max_element(highest, highest + kLanes);
  bool is_finite = true;
  for (float p : poison) is_finite = is_finite && p == 0.0f;
  for (std::size_t i = whole; i < data.size(); ++i) {
    lo = std::min(lo, data[i]);
    hi = std::max(hi, data[i]);
    is_finite = is_finite && std::isfinite(data[i]);
  }
  if (!is_finite) return false;
  low = count == 0 ? lo : std::min(low, lo);
  high = count == 0 ? hi : std::max(high, hi);
  count += data.size();
  return true;
}

void Histogram::add(std::span<const float> data) {
  if (is_constant()) {
    bins[0] += data.size();
    return;
  }
  const double scale = 1.0 / bin_width();
  const double last = static_cast<double>(bins.size() - 1);
  for (float v : data) {
    const double place = std::min(last, std::max(0.0, (static_cast<double>(v) - static_cast<double>(low)) * scale));
    ++bins[static_cast<std::size_t>(place)];
  }
}

}  // namespace ctk::calibrate
