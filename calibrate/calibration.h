// Ranges of activations: what a network's values look like over the calibration split, in fixed memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibrate/histogram.h"
#include "core/result.h"

namespace ctk::calibrate {

struct Range {
  std::string value;         // name of the graph value
  float low = 0, high = 0;   // finite, low <= 0 <= high not required
  std::uint64_t count = 0;   // numbers seen
  std::string method;        // observer
  std::string source;        // what the range was read from, and what was special about it
};

struct CalibrationOptions {
  std::string method = "minmax";
  double percentile = 99.99;    // of the mass kept, by the percentile observer
  std::size_t bins = 2048;
};

// Collects one range per value. Memory is values x bins, whatever the number of samples. Results do not depend on batch
// size or thread count: counts are whole numbers and bin edges come from the first pass.
class RangeCollector {
 public:
  // Errors: config (unknown observer; lists the known).
  static Result<RangeCollector> create(const CalibrationOptions& options, std::vector<std::string> names);

  int passes() const;          // times the whole split must be shown
  Status begin_pass(int pass); // 0, then 1 if passes() == 2
  // data: all numbers of one value for one batch, whose first sample has number `first_sample`.
  // Errors: input (NaN or infinity: names value and batch).
  Status observe(std::size_t value_index, std::span<const float> data, std::size_t first_sample);
  // Errors: input (a value no sample reached, or no sample at all).
  Result<std::vector<Range>> finish() const;
  std::size_t memory_bytes() const;

 private:
  RangeCollector(const CalibrationOptions& options, std::vector<std::string> names, const struct Observer& observer);

  CalibrationOptions options_;
  std::vector<std::string> names_;
  const Observer* observer_;
  std::vector<Histogram> histograms_;
  int pass_ = 0;
};

}  // namespace ctk::calibrate
