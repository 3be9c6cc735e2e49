#include "data/chat/value.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace ctk::data::chat {
namespace {

std::string number_text(double number) {
  if (std::isfinite(number) && number == std::floor(number) && std::abs(number) < 1e16) {
    return std::to_string(static_cast<std::int64_t>(number)) + ".0";
  }
  return nlohmann::json(number).dump();  // the shortest that reads back, as repr()
}

std::string quoted_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// As Python's repr() of a text without control characters.
std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string shown(const Value& value) {
  const std::string* text = value.get<std::string>();
  return text != nullptr ? quoted(*text) : to_text(value);
}

double as_number(const Value& value, bool& is_number) {
  if (const auto* truth = value.get<bool>()) return *truth ? 1 : 0;
  if (const auto* whole = value.get<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = value.get<double>()) return *real;
  is_number = false;
  return 0;
}

}  // namespace

const Value* find(const Map& map, std::string_view key) {
  for (const auto& [name, value] : map) {
    if (name == key) return &value;
  }
  return nullptr;
}

bool is_true(const Value& value) {
  if (const auto* truth = value.get<bool>()) return *truth;
  if (const auto* whole = value.get<std::int64_t>()) return *whole != 0;
  if (const auto* real = value.get<double>()) return *real != 0;
  if (const auto* text = value.get<std::string>()) return !text->empty();
  if (value.list() != nullptr) return !value.list()->empty();
  return value.map() != nullptr && !value.map()->empty();
}

bool are_equal(const Value& a, const Value& b) {
  bool are_numbers = true;
  const double x = as_number(a, are_numbers), y = as_number(b, are_numbers);
  if (are_numbers) return x == y;
  if (a.held.index() != b.held.index()) return false;
  if (const auto* text = a.get<std::string>()) return *text == *b.get<std::string>();
  if (a.list() != nullptr) {
    if (a.list()->size() != b.list()->size()) return false;
    for (std::size_t i = 0; i < a.list()->size(); ++i) {
      if (!are_equal((*a.list())[i], (*b.list())[i])) return false;
    }
    return true;
  }
  if (a.map() != nullptr) {
    if (a.map()->size() != b.map()->size()) return false;
    for (const auto& [key, value] : *a.map()) {
      const Value* other = find(*b.map(), key);
      if (other == nullptr || !are_equal(value, *other)) return false;
    }
    return true;
  }
  return a.get<None>() != nullptr || a.get<Undefined>() != nullptr;
}

std::string type_name(const Value& value) {
  constexpr const char* kNames[] = {
      "something undefined", "none", "a truth value", "a whole number", "a number", "a text", "a list", "a map"};
  const auto* undefined = value.get<Undefined>();
  if (undefined != nullptr && !undefined->name.empty()) return "\"" + undefined->name + "\", which is undefined";
  return kNames[value.held.index()];
}

std::string to_text(const Value& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  if (value.get<None>() != nullptr) return "None";
  if (const auto* truth = value.get<bool>()) return *truth ? "True" : "False";
  if (const auto* whole = value.get<std::int64_t>()) return std::to_string(*whole);
  if (const auto* real = value.get<double>()) return number_text(*real);
  std::string out;
  if (const List* list = value.list()) {
    for (const Value& item : *list) out += (out.empty() ? "" : ", ") + shown(item);
    return "[" + out + "]";
  }
  if (const Map* map = value.map()) {
    for (const auto& [key, item] : *map) out += (out.empty() ? "" : ", ") + quoted(key) + ": " + shown(item);
    return "{" + out + "}";
  }
  return "";
}

std::string to_json(const Value& value, int indent, int level) {
  if (const auto* text = value.get<std::string>()) return quoted_json(*text);
  if (value.get<None>() != nullptr || !value.is_defined()) return "null";
  if (const auto* truth = value.get<bool>()) return *truth ? "true" : "false";
  const std::string line =
      indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level + 1), ' ');
  const std::string last =
      indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
  const std::string comma = indent < 0 ? ", " : ",";
  std::string out;
  if (const List* list = value.list()) {
    if (list->empty()) return "[]";
    for (const Value& item : *list) out += (out.empty() ? "" : comma) + line + to_json(item, indent, level + 1);
    return "[" + out + last + "]";
  }
  if (const Map* map = value.map()) {
    if (map->empty()) return "{}";
    for (const auto& [key, item] : *map)
      out += (out.empty() ? "" : comma) + line + quoted_json(key) + ": " + to_json(item, indent, level + 1);
    return "{" + out + last + "}";
  }
  return to_text(value);
}

}  // namespace ctk::data::chat
