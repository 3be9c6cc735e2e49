#include "data/chat/filters.h"

#include <algorithm>

#include "data/chat/text_functions.h"
#include "data/text/unicode.h"

namespace ctk::data::chat {

Result<Value> filter_replace(const Value& value, const Given& given) {
  const Value *old = given.find(0, "old"), *fresh = given.find(1, "new");
  if (old == nullptr || fresh == nullptr) return input_error("replace: expected two texts, found fewer. Give both");
  CTK_TRY(std::string text, replaced(to_text(value), to_text(*old), to_text(*fresh)));
  return Value(std::move(text));
}

Result<Value> filter_lower(const Value& value, const Given&) {
  return Value(to_lower(to_text(value)));
}

Result<Value> filter_upper(const Value& value, const Given&) {
  return Value(upper(to_text(value)));
}

Result<Value> filter_title(const Value& value, const Given&) {
  return Value(titled(to_text(value)));
}

Result<Value> filter_capitalize(const Value& value, const Given&) {
  return Value(capitalized(to_text(value)));
}

Result<Value> filter_items(const Value& value, const Given&) {
  if (value.map() == nullptr) return wrong("a map", value);
  List pairs;
  for (const auto& [key, item] : *value.map()) pairs.emplace_back(List{Value(key), item});
  return Value(std::move(pairs));
}

Result<Value> filter_join(const Value& value, const Given& given) {
  CTK_TRY(const List items, items_of(value));
  const Value* between = given.find(0, "d");
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += (i > 0 && between != nullptr ? to_text(*between) : "") + to_text(items[i]);
    if (out.size() > kMostText) return too_long();
  }
  return Value(std::move(out));
}

namespace {

Result<Value> filter_trim(const Value& value, const Given&) {
  return Value(stripped(to_text(value), nullptr, true, true));
}
Result<Value> filter_string(const Value& value, const Given&) {
  return Value(to_text(value));
}
Result<Value> filter_length(const Value& value, const Given&) {
  CTK_TRY(const List items, items_of(value));
  return Value(static_cast<std::int64_t>(items.size()));
}
Result<Value> filter_list(const Value& value, const Given&) {
  CTK_TRY(List items, items_of(value));
  return Value(std::move(items));
}
Result<Value> filter_first(const Value& value, const Given&) {
  CTK_TRY(const List items, items_of(value));
  return items.empty() ? Value() : items.front();
}
Result<Value> filter_last(const Value& value, const Given&) {
  CTK_TRY(const List items, items_of(value));
  return items.empty() ? Value() : items.back();
}
Result<Value> filter_reverse(const Value& value, const Given&) {
  CTK_TRY(List items, items_of(value));
  std::ranges::reverse(items);
  if (value.get<std::string>() == nullptr) return Value(std::move(items));
  std::string text;
  for (const Value& item : items) text += to_text(item);
  return Value(std::move(text));
}
Result<Value> filter_default(const Value& value, const Given& given) {
  const Value* other = given.find(0, "default_value");
  const Value* for_false = given.find(1, "boolean");
  const bool is_kept = value.is_defined() && (for_false == nullptr || !is_true(*for_false) || is_true(value));
  return is_kept ? value : other != nullptr ? *other : Value("");
}
Result<Value> filter_tojson(const Value& value, const Given& given) {
  const Value* indent = given.find(0, "indent");
  const auto* spaces = indent != nullptr ? indent->get<std::int64_t>() : nullptr;
  return Value(to_json(value, spaces != nullptr ? static_cast<int>(std::clamp<std::int64_t>(*spaces, 0, 16)) : -1));
}
Result<Value> filter_int(const Value& value, const Given&) {
  if (const auto* whole = value.get<std::int64_t>()) return Value(*whole);
  if (const auto* real = value.get<double>()) return Value(static_cast<std::int64_t>(std::clamp(*real, -9e18, 9e18)));
  const std::string text = stripped(to_text(value), nullptr, true, true);
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  const bool is_number =
      text.size() > digits && text.size() < 18 && text.find_first_not_of("0123456789", digits) == std::string::npos;
  return Value(is_number ? static_cast<std::int64_t>(std::stoll(text)) : std::int64_t{0});
}
Result<Value> filter_same(const Value& value, const Given&) {
  return value;
}

Result<Value> picked(const Value& value, const Given& given, bool wanted) {
  CTK_TRY(const List items, items_of(value));
  const Value *name = given.find(0, "attribute"), *test = given.find(1, "test");
  if (name == nullptr) return input_error("selectattr: expected the name of an attribute, found none. Give it");
  Given rest;
  for (std::size_t i = 2; i < given.by_place.size(); ++i) rest.by_place.push_back(given.by_place[i]);
  List out;
  for (const Value& item : items) {
    CTK_TRY(const Value part, item_of(item, *name));
    bool holds = is_true(part);
    if (test != nullptr) {
      CTK_TRY(holds, apply_test(to_text(*test), part, rest));
    }
    if (holds == wanted) out.push_back(item);
  }
  return Value(std::move(out));
}
Result<Value> filter_selectattr(const Value& value, const Given& given) {
  return picked(value, given, true);
}
Result<Value> filter_rejectattr(const Value& value, const Given& given) {
  return picked(value, given, false);
}
Result<Value> filter_map(const Value& value, const Given& given) {
  CTK_TRY(const List items, items_of(value));
  const Value* filter = given.find(0, "filter");
  const Value* attribute = nullptr;
  for (const auto& [name, argument] : given.by_name) {
    if (name == "attribute") attribute = &argument;
  }
  if (attribute == nullptr && filter == nullptr)
    return input_error("map: expected a filter or attribute=, found neither. Give one");
  List out;
  for (const Value& item : items) {
    CTK_TRY(Value made, attribute != nullptr ? item_of(item, *attribute) : apply_filter(to_text(*filter), item, {}));
    out.push_back(std::move(made));
  }
  return Value(std::move(out));
}

constexpr std::pair<std::string_view, Filter> kFilters[] = {
    {"trim", filter_trim},
    {"lower", filter_lower},
    {"upper", filter_upper},
    {"title", filter_title},
    {"capitalize", filter_capitalize},
    {"string", filter_string},
    {"length", filter_length},
    {"count", filter_length},
    {"list", filter_list},
    {"first", filter_first},
    {"last", filter_last},
    {"reverse", filter_reverse},
    {"join", filter_join},
    {"default", filter_default},
    {"d", filter_default},
    {"replace", filter_replace},
    {"tojson", filter_tojson},
    {"int", filter_int},
    {"items", filter_items},
    {"safe", filter_same},
    {"selectattr", filter_selectattr},
    {"map", filter_map},
    {"rejectattr", filter_rejectattr},
};

}  // namespace

Result<Value> apply_filter(const std::string& name, const Value& value, const Given& given) {
  CTK_TRY(const Filter filter, look_up(kFilters, "filter", name));
  return filter(value, given);
}

}  // namespace ctk::data::chat
