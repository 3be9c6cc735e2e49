// Entropy: the share of the range that minimises KL(P || Q), where P is the histogram with everything outside the range
// moved to its end bins, and Q is P spread evenly over what each of the 256 codes covers (empty bins stay empty).
// Cost: 64 candidates x bins. Source: Migacz, 8-bit Inference with TensorRT, GTC 2017. Differs: affine codes; both ends
// shrink by the same share towards zero, and an end at zero stays.
#include <algorithm>
#include <cmath>

#include "calibrate/observers/observer.h"

namespace ctk::calibrate {
namespace {

// P within bins [first, last), clipped mass at the ends, against its 256-level form.
double divergence(const Histogram& histogram, std::size_t first, std::size_t last) {
  const std::size_t width = last - first;
  std::vector<double> p(width), kept(width);
  double below = 0, above = 0;
  for (std::size_t b = 0; b < first; ++b) below += static_cast<double>(histogram.bins[b]);
  for (std::size_t b = last; b < histogram.bins.size(); ++b) above += static_cast<double>(histogram.bins[b]);
  for (std::size_t b = 0; b < width; ++b) p[b] = kept[b] = static_cast<double>(histogram.bins[first + b]);
  p.front() += below;
  p.back() += above;
  const double total = static_cast<double>(histogram.count);
  double inside = 0;
  for (double k : kept) inside += k;
  if (inside == 0) return INFINITY;
  double sum = 0;
  const std::size_t levels = std::min<std::size_t>(256, width);
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t begin = width * level / levels, end = width * (level + 1) / levels;
    double mass = 0;
    std::size_t used = 0;
    for (std::size_t b = begin; b < end; ++b) {
      mass += kept[b];
      used += kept[b] > 0 ? 1 : 0;
    }
    for (std::size_t b = begin; b < end; ++b) {
      if (p[b] == 0) continue;
      // A bin that holds clipped mass only has no counterpart in Q: the least mass a bin can have stands in for it.
      const double q = kept[b] > 0 ? mass / static_cast<double>(used) / inside : 0.5 / inside;
      sum += p[b] / total * std::log(p[b] / total / q);
    }
  }
  return sum;
}

}  // namespace

Limits pick_entropy(const Histogram& histogram, const CalibrationOptions&) {
  constexpr int kSteps = 64;
  const auto bins = static_cast<double>(histogram.bins.size());
  const double low = histogram.low, high = histogram.high;
  Limits best{low, high};
  double least = INFINITY;
  for (int step = kSteps; step >= kSteps / 8; --step) {   // from the whole range down; ties keep the wider one
    const double share = static_cast<double>(step) / kSteps;
    const double from = low < 0 ? low * share : low, to = high > 0 ? high * share : high;
    if (!(to > from)) continue;
    const auto first = static_cast<std::size_t>(std::clamp((from - low) / histogram.bin_width(), 0.0, bins - 1));
    const auto last = static_cast<std::size_t>(std::clamp(std::ceil((to - low) / histogram.bin_width()), static_cast<double>(first) + 1, bins));
    const double kl = divergence(histogram, first, last);
    if (kl < least) {
      least = kl;
      best = {from, to};
    }
  }
  return best;
}

}  // namespace ctk::calibrate
