// Numbers with units as pipeline files spell them: sizes, times, shares of the float model, metric drops.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace ctk::pipeline {

// A budget: an absolute figure, or a share of the float model's figure.
struct Limit {
  double value = 0;  // bytes or microseconds; with is_share a factor (20 % = 0.2)
  bool is_share = false;
  // The absolute figure, given the float model's.
  double absolute(double float_figure) const { return is_share ? value * float_figure : value; }
  bool operator==(const Limit&) const = default;
};

// How much worse a metric may get.
struct MetricDrop {
  double value = 0;  // points (1.0 pt = 1.0), or with is_relative a factor of the float model's figure (1 % = 0.01)
  bool is_relative = false;
  bool operator==(const MetricDrop&) const = default;
};

// "60 kB", "3.2 MiB", "512 B"; kB, MB, GB count in thousands, KiB, MiB, GiB in 1024s; "20 %" is a share.
// The value must be finite and above 0. Errors: config (expected, found, what to add; no position).
Result<Limit> parse_size(std::string_view text);
// "0.20 ms", "350 us", "1.5 s" -> microseconds; "60 %" is a share. Errors as above.
Result<Limit> parse_latency(std::string_view text);
// "1.0 pt" (points) or "1 %" (relative); 0 is allowed. Errors as above.
Result<MetricDrop> parse_drop(std::string_view text);

// A finite decimal number that fills the whole text. Errors: config.
Result<double> parse_number(std::string_view text);

// Canonical spellings that parse back to the same value.
std::string to_text(const Limit& limit, std::string_view unit);
std::string to_text(const MetricDrop& drop);
// The shortest decimal text that reads back as the same double.
std::string to_text(double number);

}  // namespace ctk::pipeline
