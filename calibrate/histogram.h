// Extremes and, in a second pass, counts over equal bins between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ctk::calibrate {

struct Histogram {
  float low = 0, high = 0;                // extremes; valid when count > 0
  std::uint64_t count = 0;
  std::vector<std::uint64_t> bins;        // [bin count]; empty before the second pass

  // First pass. False when a number is NaN or infinite (extremes are then not to be used).
  bool extend(std::span<const float> data);
  // Second pass: numbers outside [low, high] (there are none when both passes see the same data) go to the end bins.
  void add(std::span<const float> data);
  double bin_width() const { return (static_cast<double>(high) - static_cast<double>(low)) / static_cast<double>(bins.size()); }
  double center(std::size_t bin) const { return static_cast<double>(low) + (static_cast<double>(bin) + 0.5) * bin_width(); }
  bool is_constant() const { return !(high > low); }
};

}  // namespace ctk::calibrate
