// Ranges of activations from calibration data. Memory per value is fixed, whatever the number of samples; results do
// not depend on how the data is cut into chunks, on their order or on threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calibrate/observer.h"

namespace ctk::calibrate {

struct Range {
  std::string value;        // name in the graph
  float low = 0, high = 0;  // low <= 0 <= high, finite: give them to activation_quant_from_range()
  std::uint64_t count = 0;  // elements seen
  std::uint64_t samples = 0;
  std::string method;  // "minmax", ...
  std::string source;  // where the range comes from: "calibration data"
  std::string note;    // empty, or what is special: "constant 0", "constant 0.5, widened to hold 0", ...
};

// Drive it so:
//   for (int pass = 0; pass < collector.passes(); ++pass) {
//     collector.begin_pass(pass);
//     for each batch: run the float network; for each value: collector.observe(index, data, first_sample, samples);
//   }
//   collector.finish();
// Both passes must see the same data. To leave out a sample that observe() refused, begin the same pass again without
// it.
class RangeCollector {
 public:
  // Errors: config (unknown method; percentile not above 50 and at most 100).
  static Result<RangeCollector> create(ObserverOptions options, std::vector<std::string> value_names);

  int passes() const { return observer_->passes; }
  // pass: 0, then 1 where there are two; the current one again starts it over. Errors: internal (out of order),
  // input (no sample was seen in the first pass).
  Status begin_pass(int pass);
  // `data` [sample_count, ...] are the elements of one value for samples first_sample_index ... + sample_count - 1.
  // Calls for different values may run at the same time. Errors: input (NaN or infinity; names value and sample).
  Status observe(std::size_t value_index, std::span<const float> data, std::size_t first_sample_index,
                 std::size_t sample_count = 1);
  // What this pass has seen so far, and this pass as one collector would have left it that saw what `parts` did (its
  // own among them). Exact: extents and counts do not depend on where the data are cut. Errors: internal (parts of
  // other values, or of another pass).
  std::string seen() const;
  Status take(std::span<const std::string> parts);
  // One range a value, in order of the names. Errors: input (no samples; a value never seen; passes saw different
  // data), internal (a pass is missing).
  Result<std::vector<Range>> finish() const;
  // The same by another observer, which needs no more passes than the one created for. Errors: config (unknown, or
  // more passes), those of finish().
  Result<std::vector<Range>> finish_by(std::string_view method) const;

  std::size_t memory_bytes() const;  // held for the values; does not grow with the data

 private:
  struct State {
    std::string name;
    Extent extent;  // of the first pass
    std::uint64_t samples = 0;
    std::unique_ptr<Histogram> histogram;  // of the second
    std::uint64_t second_count = 0;
  };
  RangeCollector(ObserverOptions options, const Observer* observer)
      : options_(std::move(options)), observer_(observer) {}
  Status check_same_data(const State& state) const;
  Range range_of(const State& state, const Observer& observer) const;
  Result<std::vector<Range>> finish(const Observer& observer) const;

  ObserverOptions options_;
  const Observer* observer_;
  std::vector<State> states_;
  int pass_ = -1;
};

}  // namespace ctk::calibrate
