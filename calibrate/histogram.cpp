#include "calibrate/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace ctk::calibrate {
namespace {

constexpr std::size_t kLanes = 16;

bool is_not_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) == 0x7f800000u;
}

}  // namespace

void Extent::add(std::span<const float> data) {
  if (data.empty()) return;
  // Lanes written as the processor's own minimum, so that the compiler may use it without relaxed float rules.
  std::array<float, kLanes> lows, highs;
  lows.fill(count == 0 ? data[0] : low);
  highs.fill(count == 0 ? data[0] : high);
  std::size_t i = 0;
  for (; i + kLanes <= data.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = data[i + lane];
      lows[lane] = value < lows[lane] ? value : lows[lane];
      highs[lane] = value > highs[lane] ? value : highs[lane];
    }
  }
  for (; i < data.size(); ++i) {
    lows[0] = std::min(lows[0], data[i]);
    highs[0] = std::max(highs[0], data[i]);
  }
  // Which zero came first must not show: -0 + 0 is +0.
  low = *std::min_element(lows.begin(), lows.end()) + 0.0f;
  high = *std::max_element(highs.begin(), highs.end()) + 0.0f;
  count += data.size();
}

std::size_t first_not_finite(std::span<const float> data) {
  constexpr std::size_t kBlock = 1024;
  for (std::size_t start = 0; start < data.size(); start += kBlock) {
    const auto block = data.subspan(start, std::min(kBlock, data.size() - start));
    std::uint32_t found = 0;
    for (float value : block) found |= is_not_finite(value) ? 1u : 0u;
    if (found == 0) continue;
    return start + static_cast<std::size_t>(std::find_if(block.begin(), block.end(), is_not_finite) - block.begin());
  }
  return data.size();
}

Histogram::Histogram(float low, float high) : low_(low), high_(high), counts_(kBins + 1, 0) {}

void Histogram::add(std::span<const float> data) {
  constexpr std::size_t kBlock = 256, kWays = 4, kStripe = kBins + 16;
  // Beyond this many elements a 32-bit stripe could overflow.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  for (; data.size() > kMost; data = data.subspan(kMost)) add(data.first(kMost));

  // Neighbours often share a bin (constant borders), and adding to the same counter twice in a row makes the second
  // wait; four stripes avoid it. Short data would spend more on clearing the stripes.
  const bool is_striped = data.size() >= 4 * kBins;
  std::vector<std::uint32_t> stripes(is_striped ? kWays * kStripe : 0, 0);
  const double scale = static_cast<double>(kBins) / (high_ - low_);
  const float low = static_cast<float>(low_), float_scale = static_cast<float>(scale);
  const bool is_float_enough = std::isfinite(float_scale) && std::isfinite(static_cast<float>(high_ - low_));
  std::array<std::int32_t, kBlock> bins;
  for (std::size_t start = 0; start < data.size(); start += kBlock) {
    const std::size_t count = std::min(kBlock, data.size() - start);
    const float* values = data.data() + start;
    constexpr float kLast = static_cast<float>(kBins - 1);
    if (is_float_enough) {
      for (std::size_t i = 0; i < count; ++i) {
        const float place = (values[i] - low) * float_scale;
        const float inside = place < 0.0f ? 0.0f : place;
        const std::int32_t bin = static_cast<std::int32_t>(inside > kLast ? kLast : inside);
        bins[i] = values[i] == 0.0f ? static_cast<std::int32_t>(kBins) : bin;
      }
    } else {  // a range past float's own: up to 6.8e38 wide, or narrower than 1e-35
      for (std::size_t i = 0; i < count; ++i) {
        const double place = (static_cast<double>(values[i]) - low_) * scale;
        bins[i] = values[i] == 0.0f ? static_cast<std::int32_t>(kBins)
                                    : static_cast<std::int32_t>(std::clamp(place, 0.0, static_cast<double>(kBins - 1)));
      }
    }
    if (is_striped && count == kBlock) {
      for (std::size_t i = 0; i < kBlock; i += kWays) {
        for (std::size_t way = 0; way < kWays; ++way)
          ++stripes[way * kStripe + static_cast<std::size_t>(bins[i + way])];
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) ++counts_[static_cast<std::size_t>(bins[i])];
    }
  }
  if (!is_striped) return;
  for (std::size_t bin = 0; bin <= kBins; ++bin) {
    for (std::size_t way = 0; way < kWays; ++way) counts_[bin] += stripes[way * kStripe + bin];
  }
}

std::uint64_t Histogram::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

void Histogram::add_counts(std::span<const std::uint64_t> counts) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += counts[i];
}

}  // namespace ctk::calibrate
