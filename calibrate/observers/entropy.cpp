// Entropy: the range whose 256-level copy of the distribution is nearest to it in KL divergence.
// Minimises: KL(P || Q). P: the bins inside the range, with everything outside added to the edge bins. Q: the mass that
//      really lies inside, spread evenly over those of its bins that are not empty within each of the 256 levels.
//      Clipping costs (P has mass at the edge that Q lacks) and so do coarse levels.
// In:  histogram. Out: [low, high] of whole bins, at least 256 of them. Exact zeros are left out: they have a code of
//      their own in every range.
// Search: one end after the other, twice, each coarse (32 bins) then fine (4 bins); only ends beyond 0 move, so
//      one-sided data keeps its bound at 0. Ties go to the wider range.
// Cost: some 5 ms a value. Source: Migacz, 8-bit Inference with TensorRT, 2017. Differs: affine levels over two free
//      ends instead of a symmetric threshold over |x|; an empty bin of Q counts as 1e-9 of the mass instead of being
//      smoothed from its neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/observer.h"

namespace ctk::calibrate {
namespace {

constexpr std::size_t kBins = Histogram::kBins, kLevels = 256, kLeast = 256, kCoarse = 32, kFine = 4;
constexpr double kEmpty = 1e-9;

struct Window {
  std::size_t first = 0, end = kBins;
};

// KL for the window of bins, in nats.
double divergence(const Histogram& histogram, Window window) {
  const double low = std::min(0.0, histogram.edge(window.first)), high = std::max(0.0, histogram.edge(window.end));
  std::array<double, kBins> p;
  std::array<std::uint16_t, kBins> levels;
  std::array<double, kLevels> mass{}, filled{};
  double total = 0, inside = 0;
  for (std::size_t i = 0; i < kBins; ++i) total += static_cast<double>(histogram.count(i));
  for (std::size_t i = window.first; i < window.end; ++i) {
    const double n = static_cast<double>(histogram.count(i));
    const double level = (histogram.center(i) - low) / (high - low) * static_cast<double>(kLevels - 1) + 0.5;
    levels[i] = static_cast<std::uint16_t>(std::clamp(level, 0.0, static_cast<double>(kLevels - 1)));
    p[i] = n;
    inside += n;
    mass[levels[i]] += n;
    filled[levels[i]] += n > 0 ? 1 : 0;
  }
  if (!(inside > 0)) return HUGE_VAL;
  for (std::size_t i = 0; i < window.first; ++i) p[window.first] += static_cast<double>(histogram.count(i));
  for (std::size_t i = window.end; i < kBins; ++i) p[window.end - 1] += static_cast<double>(histogram.count(i));
  double sum = 0;
  for (std::size_t i = window.first; i < window.end; ++i) {
    if (p[i] == 0) continue;
    const bool is_empty = histogram.count(i) == 0;
    const double q = is_empty ? kEmpty : mass[levels[i]] / filled[levels[i]] / inside;
    sum += p[i] / total * std::log(p[i] / total / q);
  }
  return sum;
}

// Moves one end through [from, to] by `step` and keeps the best; `is_high` says which. Widest first.
void move_end(const Histogram& histogram, Window& best, double& least, bool is_high, std::size_t from, std::size_t to,
              std::size_t step) {
  for (std::size_t i = 0; from + i <= to; i += step) {
    Window window = best;
    (is_high ? window.end : window.first) = is_high ? to - i : from + i;
    const double found = divergence(histogram, window);
    if (!(found < least)) continue;
    least = found;
    best = window;
  }
}

void search_end(const Histogram& histogram, Window& best, double& least, bool is_high, std::size_t zero) {
  // The range must keep kLeast bins and the bin where 0 lies.
  const std::size_t from = is_high ? std::max(best.first + kLeast, zero) : 0;
  const std::size_t to = is_high ? kBins : std::min(best.end - kLeast, zero);
  if (from > to) return;
  move_end(histogram, best, least, is_high, from, to, kCoarse);
  const std::size_t at = is_high ? best.end : best.first;
  move_end(histogram, best, least, is_high, std::max(from, at - std::min(at, kCoarse)), std::min(to, at + kCoarse),
           kFine);
}

}  // namespace

Interval choose_entropy(const Observed& observed, const ObserverOptions&) {
  const Histogram& histogram = *observed.histogram;
  const double place = std::clamp((0.0 - histogram.low()) / histogram.width(), 0.0, static_cast<double>(kBins));
  const auto zero = static_cast<std::size_t>(place);
  Window best;
  double least = divergence(histogram, best);
  for (int round = 0; round < 2; ++round) {
    if (histogram.high() > 0) search_end(histogram, best, least, true, std::min(zero + 1, kBins));
    if (histogram.low() < 0) search_end(histogram, best, least, false, zero);
  }
  return {histogram.edge(best.first), histogram.edge(best.end)};
}

}  // namespace ctk::calibrate
