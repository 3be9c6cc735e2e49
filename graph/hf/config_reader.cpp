#include "graph/hf/config_reader.h"

#include <cmath>

#include "core/printable.h"

namespace ctk::graph::hf {

using nlohmann::json;

const json* ConfigReader::find(const std::string& key) {
  asked_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigReader::fail(const std::string& key, const std::string& expected, const std::string& found,
                        const std::string& remedy) {
  if (error_) return;
  error_ = input_error(where_ + key + ": expected " + expected + ", found " + found + ". " + remedy);
}

template <class Is>
const json* ConfigReader::typed(const std::string& key, const char* expected, Is is) {
  const json* value = find(key);
  if (value == nullptr || is(*value)) return value;
  fail(key, expected, shown(*value), "Correct the file");
  return nullptr;
}

std::optional<std::int64_t> ConfigReader::integer(const std::string& key) {
  const auto is = [](const json& v) {
    if (v.is_number_unsigned()) return v.get<std::uint64_t>() < (std::uint64_t{1} << 62);
    return v.is_number_integer();
  };
  const json* value = typed(key, "an integer", is);
  if (value == nullptr) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<double> ConfigReader::real(const std::string& key) {
  const json* value =
      typed(key, "a number", [](const json& v) { return v.is_number() && std::isfinite(v.get<double>()); });
  if (value == nullptr) return std::nullopt;
  return value->get<double>();
}

std::optional<bool> ConfigReader::boolean(const std::string& key) {
  const json* value = typed(key, "true or false", [](const json& v) { return v.is_boolean(); });
  if (value == nullptr) return std::nullopt;
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::text(const std::string& key) {
  const json* value = typed(key, "a string", [](const json& v) { return v.is_string(); });
  if (value == nullptr) return std::nullopt;
  return value->get<std::string>();
}

const json* ConfigReader::object(const std::string& key) {
  return typed(key, "an object", [](const json& v) { return v.is_object(); });
}

const json* ConfigReader::list(const std::string& key) {
  return typed(key, "a list", [](const json& v) { return v.is_array(); });
}

std::int64_t ConfigReader::required_integer(const std::string& key) {
  const auto value = integer(key);
  if (!value) fail(key, "an integer", "none", "Complete the file");
  return value.value_or(0);
}

double ConfigReader::required_real(const std::string& key) {
  const auto value = real(key);
  if (!value) fail(key, "a number", "none", "Complete the file");
  return value.value_or(0.0);
}

std::vector<std::string> ConfigReader::unasked() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) {
    if (!asked_.contains(key) && !value.is_null()) keys.push_back(key);
  }
  return keys;
}

}  // namespace ctk::graph::hf
