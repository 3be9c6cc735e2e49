#include "compress/units.h"

#include <charconv>
#include <cmath>
#include <span>

namespace ctk::pipeline {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kSizeUnits[] = {{"B", 1},      {"kB", 1e3},      {"MB", 1e6},        {"GB", 1e9},
                               {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
constexpr Unit kTimeUnits[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Splits "60 kB" into 60 and "kB"; false when it does not start with a finite number.
bool split_number(std::string_view text, double& number, std::string_view& unit) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return false;
  unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  return true;
}

Error wrong(std::string_view expected, std::string_view found, std::string_view remedy) {
  return config_error("expected " + std::string(expected) + ", found \"" + std::string(found) + "\". " +
                      std::string(remedy));
}

Result<Limit> parse_limit(std::string_view text, std::span<const Unit> units, std::string_view expected,
                          std::string_view remedy) {
  double number = 0;
  std::string_view unit;
  if (!split_number(text, number, unit)) return wrong(expected, text, remedy);
  if (number <= 0) return wrong(expected, text, "The value must be above 0.");
  if (unit == "%") return Limit{number / 100, true};
  for (const Unit& known : units) {
    if (unit == known.name && std::isfinite(number * known.factor)) return Limit{number * known.factor, false};
  }
  return wrong(expected, text, remedy);
}

}  // namespace

Result<Limit> parse_size(std::string_view text) {
  return parse_limit(text, kSizeUnits, "a size like \"60 kB\" or a share like \"20 %\"",
                     "Add a unit: B, kB, MB, GB, KiB, MiB, GiB or %.");
}

Result<Limit> parse_latency(std::string_view text) {
  return parse_limit(text, kTimeUnits, "a time like \"0.20 ms\" or a share like \"60 %\"",
                     "Add a unit: us, ms, s or %.");
}

Result<MetricDrop> parse_drop(std::string_view text) {
  constexpr std::string_view expected = "a drop like \"1.0 pt\" (points) or \"1 %\" (relative)";
  double number = 0;
  std::string_view unit;
  if (!split_number(text, number, unit)) return wrong(expected, text, "Add a unit: pt or %.");
  if (number < 0) return wrong(expected, text, "The value must not be negative.");
  if (unit == "pt") return MetricDrop{number, false};
  if (unit == "%") return MetricDrop{number / 100, true};
  return wrong(expected, text, "Add a unit: pt or %.");
}

Result<double> parse_number(std::string_view text) {
  double number = 0;
  std::string_view rest;
  if (!split_number(text, number, rest) || !rest.empty()) {
    return config_error("expected a number, found \"" + std::string(text) + "\". Write it without a unit.");
  }
  return number;
}

std::string to_text(double number) {
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : "0";
}

std::string to_text(const Limit& limit, std::string_view unit) {
  return limit.is_share ? to_text(limit.value * 100) + " %" : to_text(limit.value) + " " + std::string(unit);
}

std::string to_text(const MetricDrop& drop) {
  return drop.is_relative ? to_text(drop.value * 100) + " %" : to_text(drop.value) + " pt";
}

}  // namespace ctk::pipeline
