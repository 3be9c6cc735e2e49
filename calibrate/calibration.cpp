#include "calibrate/calibration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace ctk::calibrate {
namespace {

std::string number(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6).ptr;
  return {buffer, end};
}

}  // namespace

Result<RangeCollector> RangeCollector::create(ObserverOptions options, std::vector<std::string> value_names) {
  CTK_TRY(const Observer* observer, find_observer(options.method));
  if (!(options.percentile > 50.0 && options.percentile <= 100.0)) {
    return config_error("calibrate.percentile: expected a number above 50 and at most 100, found \"" +
                        number(options.percentile) + "\"");
  }
  RangeCollector collector(std::move(options), observer);
  for (std::string& name : value_names) collector.states_.emplace_back().name = std::move(name);
  return collector;
}

Status RangeCollector::begin_pass(int pass) {
  if (pass < 0 || pass >= passes() || (pass != pass_ && pass != pass_ + 1)) {
    return internal_error("calibrate: pass " + std::to_string(pass) + " was begun out of order");
  }
  pass_ = pass;
  for (State& state : states_) {
    if (pass == 0) {
      state.extent = {};
      state.samples = 0;
      continue;
    }
    if (state.extent.count == 0) {
      return input_error("value \"" + state.name +
                         "\": expected at least one element in the first pass, found none: the calibration set is "
                         "empty. Check data.calibrate");
    }
    state.second_count = 0;
    state.histogram.reset();
    if (state.extent.low < state.extent.high) {
      state.histogram = std::make_unique<Histogram>(state.extent.low, state.extent.high);
    }
  }
  return {};
}

Status RangeCollector::observe(std::size_t value_index, std::span<const float> data, std::size_t first_sample_index,
                               std::size_t sample_count) {
  if (pass_ < 0 || value_index >= states_.size()) return internal_error("calibrate: observe() before begin_pass()");
  State& state = states_[value_index];
  if (const std::size_t bad = first_not_finite(data); bad < data.size()) {
    const std::size_t per_sample = std::max<std::size_t>(1, data.size() / std::max<std::size_t>(1, sample_count));
    const std::size_t sample = first_sample_index + bad / per_sample;
    const char* found = std::isnan(data[bad]) ? "NaN" : data[bad] > 0 ? "+infinity" : "-infinity";
    return input_error("value \"" + state.name + "\", sample " + std::to_string(sample) +
                       ": expected finite numbers, found " + found + " at element " + std::to_string(bad % per_sample) +
                       ". Remove or repair this sample");
  }
  if (pass_ == 0) {
    state.extent.add(data);
    state.samples += sample_count;
  } else {
    if (state.histogram != nullptr) state.histogram->add(data);
    state.second_count += data.size();
  }
  return {};
}

std::string RangeCollector::seen() const {
  std::string bytes;
  const auto add = [&bytes](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const State& state : states_) {
    if (pass_ == 0) {
      add(state.extent.low), add(state.extent.high), add(state.extent.count), add(state.samples);
      continue;
    }
    add(state.second_count);
    if (state.histogram == nullptr) continue;
    for (const std::uint64_t count : state.histogram->counts()) add(count);
  }
  return bytes;
}

Status RangeCollector::take(std::span<const std::string> parts) {
  CTK_CHECK(begin_pass(pass_));
  for (std::string_view part : parts) {
    bool is_whole = true;
    const auto read = [&part, &is_whole](auto& value) {
      is_whole = is_whole && part.size() >= sizeof value;
      if (!is_whole) return;
      std::memcpy(&value, part.data(), sizeof value);
      part.remove_prefix(sizeof value);
    };
    std::vector<std::uint64_t> counts(Histogram::kBins + 1);
    for (State& state : states_) {
      if (pass_ == 0) {
        Extent other;
        std::uint64_t samples = 0;
        read(other.low), read(other.high), read(other.count), read(samples);
        state.samples += samples;
        if (other.count == 0) continue;
        state.extent.low = state.extent.count == 0 ? other.low : std::min(state.extent.low, other.low);
        state.extent.high = state.extent.count == 0 ? other.high : std::max(state.extent.high, other.high);
        state.extent.count += other.count;
        continue;
      }
      std::uint64_t count = 0;
      read(count);
      state.second_count += count;
      if (state.histogram == nullptr) continue;
      for (std::uint64_t& bin : counts) read(bin);
      state.histogram->add_counts(counts);
    }
    if (!is_whole || !part.empty()) return internal_error("calibrate: expected what this pass saw elsewhere");
  }
  return {};
}

Status RangeCollector::check_same_data(const State& state) const {
  if (passes() == 1 || state.second_count == state.extent.count) return {};
  return input_error("value \"" + state.name + "\": expected the same data in both passes, found " +
                     std::to_string(state.extent.count) + " elements in the first and " +
                     std::to_string(state.second_count) + " in the second. Use a source that repeats");
}

Range RangeCollector::range_of(const State& state, const Observer& observer) const {
  const Extent& seen = state.extent;
  Range range{state.name,    std::min(seen.low, 0.0f),   std::max(seen.high, 0.0f), seen.count,
              state.samples, std::string(observer.name), "calibration data",        ""};
  if (seen.low == seen.high) {
    // Nothing to choose from. 0 must keep a code of its own, so a constant c gets [0, c] and comes back within a step.
    range.note = "constant " + number(seen.low) + (seen.low == 0 ? "" : ", widened to hold 0");
    return range;
  }
  const Interval chosen = observer.choose({seen, state.histogram.get()}, options_);
  const auto low = static_cast<float>(std::min(chosen.low, 0.0)), high = static_cast<float>(std::max(chosen.high, 0.0));
  if (std::isfinite(low) && std::isfinite(high) && low < high) {
    range.low = std::max(low, range.low);
    range.high = std::min(high, range.high);
  }
  if (seen.low > 0 || seen.high < 0) range.note = "widened to hold 0";
  return range;
}

Result<std::vector<Range>> RangeCollector::finish() const {
  return finish(*observer_);
}

Result<std::vector<Range>> RangeCollector::finish_by(std::string_view method) const {
  CTK_TRY(const Observer* observer, find_observer(method));
  if (observer->passes > passes()) {
    return config_error("calibrate: expected an observer of at most " + std::to_string(passes()) +
                        " passes over the data, found \"" + std::string(method) + "\" with " +
                        std::to_string(observer->passes) + ". Create the collector for it");
  }
  return finish(*observer);
}

Result<std::vector<Range>> RangeCollector::finish(const Observer& observer) const {
  if (pass_ + 1 != passes()) return internal_error("calibrate: finish() before the last pass");
  const bool is_empty = std::all_of(states_.begin(), states_.end(), [](const State& s) { return s.samples == 0; });
  if (is_empty && !states_.empty()) {
    return input_error("the calibration set is empty: expected at least one sample, found 0. Check data.calibrate");
  }
  std::vector<Range> ranges;
  for (const State& state : states_) {
    if (state.extent.count == 0) {
      return input_error("value \"" + state.name + "\": expected at least one element, found none in " +
                         std::to_string(state.samples) + " samples. Give samples for which it is not empty");
    }
    CTK_CHECK(check_same_data(state));
    ranges.push_back(range_of(state, observer));
  }
  return ranges;
}

std::size_t RangeCollector::memory_bytes() const {
  std::size_t bytes = sizeof *this + states_.capacity() * sizeof(State);
  for (const State& state : states_) {
    bytes += state.name.capacity();
    if (state.histogram != nullptr) bytes += sizeof(Histogram) + state.histogram->memory_bytes();
  }
  return bytes;
}

}  // namespace ctk::calibrate
