// Numbers, and what + < > mean for texts and lists.
#include <cmath>
#include <optional>

#include "data/chat/operations.h"

namespace ctk::data::chat {
namespace {

Error refuse(const std::string& sign, const Value& a, const Value& b) {
  return input_error("\"" + sign + "\": expected numbers, or texts or lists with \"+\", found " + type_name(a) +
                     " and " + type_name(b) + ". Give the messages the form this template is for");
}

}  // namespace

Result<Value> arithmetic(const std::string& sign, const Value& a, const Value& b) {
  const auto *x = a.get<std::string>(), *y = b.get<std::string>();
  if (x != nullptr && y != nullptr) {
    if (sign == "+") return Value(*x + *y);
    if (sign == "<") return Value(*x < *y);
    if (sign == ">") return Value(*x > *y);
    if (sign == "<=") return Value(*x <= *y);
    if (sign == ">=") return Value(*x >= *y);
    return refuse(sign, a, b);
  }
  if (a.list() != nullptr && b.list() != nullptr && sign == "+") {
    List both = *a.list();
    both.insert(both.end(), b.list()->begin(), b.list()->end());
    return Value(std::move(both));
  }
  const auto number = [](const Value& value) -> std::optional<double> {
    if (const auto* whole = value.get<std::int64_t>()) return static_cast<double>(*whole);
    if (const auto* real = value.get<double>()) return *real;
    if (const auto* truth = value.get<bool>()) return *truth ? 1.0 : 0.0;
    return std::nullopt;
  };
  const auto p = number(a), q = number(b);
  if (!p || !q) return refuse(sign, a, b);
  if (sign == "<") return Value(*p < *q);
  if (sign == ">") return Value(*p > *q);
  if (sign == "<=") return Value(*p <= *q);
  if (sign == ">=") return Value(*p >= *q);
  const bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && *q == 0) return input_error("\"" + sign + "\": expected a divisor that is not 0, found 0");
  const double result = sign == "+"    ? *p + *q
                        : sign == "-"  ? *p - *q
                        : sign == "*"  ? *p * *q
                        : sign == "/"  ? *p / *q
                        : sign == "//" ? std::floor(*p / *q)
                                       : *p - *q * std::floor(*p / *q);
  const bool is_whole = a.get<double>() == nullptr && b.get<double>() == nullptr && sign != "/";
  if (!is_whole) return Value(result);
  if (std::abs(result) > 9e15) return input_error("\"" + sign + "\": expected numbers below 9e15, found more");
  return Value(static_cast<std::int64_t>(result));
}

Result<Value> range_of(const Given& given) {
  std::int64_t bounds[3] = {0, 0, 1};
  const std::size_t count = given.by_place.size();
  for (std::size_t i = 0; i < count && i < 3; ++i) {
    const auto* whole = given.by_place[i].get<std::int64_t>();
    if (whole == nullptr)
      return input_error("range: expected whole numbers, found " + type_name(given.by_place[i]) +
                         ". Correct the template");
    bounds[count == 1 ? 1 : i] = *whole;
  }
  List out;
  if (bounds[2] == 0) return input_error("range: expected a step that is not 0, found 0. Correct the template");
  for (std::int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    if (out.size() >= kMostItems)
      return input_error("range: expected at most " + std::to_string(kMostItems) +
                         " numbers, found more. Correct the template");
    out.emplace_back(i);
  }
  return Value(std::move(out));
}

}  // namespace ctk::data::chat
