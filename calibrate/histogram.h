// Counts of a value's elements over fixed bins. Counts are whole numbers, so nothing depends on the order of the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ctk::calibrate {

// Least and largest element. Data must be finite: first_not_finite() says where it is not.
struct Extent {
  float low = 0, high = 0;  // no negative zeros
  std::uint64_t count = 0;  // elements seen; low and high mean nothing while it is 0
  void add(std::span<const float> data);
};

// Index of the first NaN or infinity, or data.size().
std::size_t first_not_finite(std::span<const float> data);

// kBins bins of equal width over [low, high]. Elements that are exactly 0 are counted apart: every affine range holds 0
// exactly, and after a Relu they are half of all. Elements outside [low, high] count in the edge bins.
class Histogram {
 public:
  static constexpr std::size_t kBins = 2048;
  Histogram(float low, float high);  // finite, low < high

  void add(std::span<const float> data);  // finite
  double low() const { return low_; }
  double high() const { return high_; }
  double width() const { return (high_ - low_) / static_cast<double>(kBins); }
  double edge(std::size_t bin) const { return bin == kBins ? high_ : low_ + width() * static_cast<double>(bin); }
  double center(std::size_t bin) const { return low_ + width() * (static_cast<double>(bin) + 0.5); }
  std::uint64_t count(std::size_t bin) const { return counts_[bin]; }
  std::uint64_t zeros() const { return counts_[kBins]; }
  std::uint64_t total() const;                                       // zeros included
  std::span<const std::uint64_t> counts() const { return counts_; }  // [kBins + 1]
  void add_counts(std::span<const std::uint64_t> counts);            // of one over the same range
  std::size_t memory_bytes() const { return counts_.capacity() * sizeof(std::uint64_t); }

 private:
  double low_, high_;
  std::vector<std::uint64_t> counts_;  // [kBins + 1], the last for zeros
};

}  // namespace ctk::calibrate
