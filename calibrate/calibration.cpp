#include "calibrate/calibration.h"

#include <cmath>

#include "calibrate/observers/observer.h"

namespace ctk::calibrate {

RangeCollector::RangeCollector(const CalibrationOptions& options, std::vector<std::string> names, const Observer& observer)
    : options_(options), names_(std::move(names)), observer_(&observer), histograms_(names_.size()) {}

Result<RangeCollector> RangeCollector::create(const CalibrationOptions& options, std::vector<std::string> names) {
  std::string known;
  for (const Observer& observer : observers()) {
    if (observer.name == options.method) return RangeCollector(options, std::move(names), observer);
    known += (known.empty() ? "" : ", ") + std::string(observer.name);
  }
  return config_error("unknown calibration method \"" + options.method + "\". Known: " + known);
}

int RangeCollector::passes() const { return observer_->passes; }

Status RangeCollector::begin_pass(int pass) {
  pass_ = pass;
  if (pass != 1) return {};
  for (Histogram& histogram : histograms_) histogram.bins.assign(options_.bins, 0);
  return {};
}

Status RangeCollector::observe(std::size_t value_index, std::span<const float> data, std::size_t first_sample) {
  Histogram& histogram = histograms_[value_index];
  if (pass_ == 1) {
    histogram.add(data);
    return {};
  }
  if (histogram.extend(data)) return {};
  std::size_t at = 0;
  while (at < data.size() && std::isfinite(data[at])) ++at;
  return input_error("calibration: value \"" + names_[value_index] + "\" became " + (std::isnan(data[at]) ? "NaN" : "infinite") +
                     " in the batch that starts at sample " + std::to_string(first_sample) +
                     "; expected finite numbers. Repair the model or the data");
}

Result<std::vector<Range>> RangeCollector::finish() const {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Histogram& histogram = histograms_[i];
    if (histogram.count == 0) {
      return input_error("calibration: value \"" + names_[i] + "\" was reached by no sample. Give calibration data");
    }
    Range range{names_[i], histogram.low, histogram.high, histogram.count, std::string(observer_->name), "calibration split"};
    if (histogram.is_constant()) {
      range.source = histogram.low == 0 ? "calibration split; always 0" : "calibration split; constant, range widened to hold 0";
    } else {
      const Limits limits = observer_->pick(histogram, options_);
      range.low = static_cast<float>(limits.low);
      range.high = static_cast<float>(limits.high);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

std::size_t RangeCollector::memory_bytes() const {
  std::size_t bytes = sizeof *this;
  for (const Histogram& histogram : histograms_) bytes += sizeof histogram + histogram.bins.capacity() * sizeof(std::uint64_t);
  return bytes;
}

}  // namespace ctk::calibrate
