#include "data/chat/operations.h"

#include <algorithm>
#include <optional>

#include "core/printable.h"
#include "data/chat/filters.h"
#include "data/chat/text_functions.h"

namespace ctk::data::chat {
namespace {

// ---- tests

using Test = Result<bool> (*)(const Value& value, const Given& given);

const Value& other(const Given& given) {
  static const Value kNone = None{};
  const Value* first = given.find(0, "other");
  return first != nullptr ? *first : kNone;
}
bool is_number(const Value& value) {
  return value.get<std::int64_t>() != nullptr || value.get<double>() != nullptr || value.get<bool>() != nullptr;
}
bool is_sequence(const Value& value) {
  return value.list() != nullptr || value.map() != nullptr || value.get<std::string>() != nullptr;
}
std::int64_t remainder(const Value& value, std::int64_t by) {
  const auto* whole = value.get<std::int64_t>();
  return whole == nullptr || by == 0 ? -1 : ((*whole % by) + by) % by;
}

constexpr std::pair<std::string_view, Test> kTests[] = {
    {"defined", [](const Value& v, const Given&) -> Result<bool> { return v.is_defined(); }},
    {"undefined", [](const Value& v, const Given&) -> Result<bool> { return !v.is_defined(); }},
    {"none", [](const Value& v, const Given&) -> Result<bool> { return v.get<None>() != nullptr; }},
    {"string", [](const Value& v, const Given&) -> Result<bool> { return v.get<std::string>() != nullptr; }},
    {"mapping", [](const Value& v, const Given&) -> Result<bool> { return v.map() != nullptr; }},
    {"sequence", [](const Value& v, const Given&) -> Result<bool> { return is_sequence(v); }},
    {"iterable", [](const Value& v, const Given&) -> Result<bool> { return is_sequence(v); }},
    {"number", [](const Value& v, const Given&) -> Result<bool> { return is_number(v); }},
    {"integer", [](const Value& v, const Given&) -> Result<bool> { return v.get<std::int64_t>() != nullptr; }},
    {"float", [](const Value& v, const Given&) -> Result<bool> { return v.get<double>() != nullptr; }},
    {"boolean", [](const Value& v, const Given&) -> Result<bool> { return v.get<bool>() != nullptr; }},
    {"true", [](const Value& v, const Given&) -> Result<bool> { return v.get<bool>() != nullptr && is_true(v); }},
    {"false", [](const Value& v, const Given&) -> Result<bool> { return v.get<bool>() != nullptr && !is_true(v); }},
    {"odd", [](const Value& v, const Given&) -> Result<bool> { return remainder(v, 2) == 1; }},
    {"even", [](const Value& v, const Given&) -> Result<bool> { return remainder(v, 2) == 0; }},
    {"divisibleby",
     [](const Value& v, const Given& g) -> Result<bool> {
       const auto* by = other(g).get<std::int64_t>();
       return by != nullptr && remainder(v, std::abs(*by)) == 0;
     }},
    {"equalto", [](const Value& v, const Given& g) -> Result<bool> { return are_equal(v, other(g)); }},
    {"eq", [](const Value& v, const Given& g) -> Result<bool> { return are_equal(v, other(g)); }},
    {"ne", [](const Value& v, const Given& g) -> Result<bool> { return !are_equal(v, other(g)); }},
    {"in", [](const Value& v, const Given& g) -> Result<bool> { return contains(other(g), v); }},
};

// ---- methods

using Method = Result<Value> (*)(const Value& self, const Given& given);

template <bool left, bool right>
Result<Value> method_strip(const Value& self, const Given& given) {
  CTK_TRY(const std::string text, text_of(self));
  const Value* set = given.find(0, "chars");
  return Value(stripped(text, set != nullptr ? set->get<std::string>() : nullptr, left, right));
}

template <bool at_end>
Result<Value> method_affix(const Value& self, const Given& given) {
  CTK_TRY(const std::string text, text_of(self));
  const Value* affix = given.find(0, "");
  if (affix == nullptr) return input_error("startswith, endswith: expected a text, found none. Give it");
  List any;
  if (affix->list() != nullptr) {
    any = *affix->list();
  } else {
    any.push_back(*affix);
  }
  for (const Value& one : any) {
    CTK_TRY(const std::string part, text_of(one));
    if (at_end ? text.ends_with(part) : text.starts_with(part)) return Value(true);
  }
  return Value(false);
}

Result<Value> method_split(const Value& self, const Given& given) {
  CTK_TRY(const std::string text, text_of(self));
  const Value* separator = given.find(0, "sep");
  const std::string* by = separator != nullptr ? separator->get<std::string>() : nullptr;
  if (by != nullptr && by->empty()) return input_error("split: expected a separator, found \"\". Give one");
  return Value(split(text, by));
}

template <Filter filter>
Result<Value> method_of_text(const Value& self, const Given& given) {
  if (self.get<std::string>() == nullptr) return wrong("a text", self);
  return filter(self, given);
}

Result<Value> method_get(const Value& self, const Given& given) {
  if (self.map() == nullptr) return wrong("a map", self);
  const Value *key = given.find(0, "key"), *fallback = given.find(1, "default");
  if (key == nullptr) return input_error("get: expected a key, found none. Give it");
  if (const auto* name = key->get<std::string>()) {
    if (const Value* found = chat::find(*self.map(), *name)) return *found;
  }
  return fallback != nullptr ? *fallback : Value(None{});
}

template <bool of_keys>
Result<Value> method_parts(const Value& self, const Given&) {
  if (self.map() == nullptr) return wrong("a map", self);
  List out;
  for (const auto& [key, value] : *self.map()) out.push_back(of_keys ? Value(key) : value);
  return Value(std::move(out));
}

Result<Value> method_join(const Value& self, const Given& given) {
  const Value* items = given.find(0, "");
  if (items == nullptr) return input_error("join: expected a list, found nothing. Give it");
  return filter_join(*items, {{self}, {}});
}

constexpr std::pair<std::string_view, Method> kMethods[] = {
    {"strip", method_strip<true, true>},
    {"lstrip", method_strip<true, false>},
    {"rstrip", method_strip<false, true>},
    {"startswith", method_affix<false>},
    {"endswith", method_affix<true>},
    {"split", method_split},
    {"join", method_join},
    {"replace", method_of_text<filter_replace>},
    {"lower", method_of_text<filter_lower>},
    {"upper", method_of_text<filter_upper>},
    {"title", method_of_text<filter_title>},
    {"capitalize", method_of_text<filter_capitalize>},
    {"get", method_get},
    {"items", filter_items},
    {"keys", method_parts<true>},
    {"values", method_parts<false>},
};

}  // namespace

const Value* Given::find(std::size_t place, std::string_view name) const {
  if (place < by_place.size()) return &by_place[place];
  for (const auto& [given, value] : by_name) {
    if (given == name) return &value;
  }
  return nullptr;
}

Result<bool> apply_test(const std::string& name, const Value& value, const Given& given) {
  CTK_TRY(const Test test, look_up(kTests, "test", name));
  return test(value, given);
}

Result<Value> call_method(const std::string& name, const Value& self, const Given& given) {
  CTK_TRY(const Method method, look_up(kMethods, "method", name));
  return method(self, given);
}

Result<List> items_of(const Value& value) {
  if (value.list() != nullptr) return *value.list();
  List out;
  if (const Map* map = value.map()) {
    for (const auto& [key, item] : *map) out.emplace_back(key);
    return out;
  }
  if (const auto* text = value.get<std::string>()) {
    for (std::string& c : characters(*text)) out.emplace_back(std::move(c));
    return out;
  }
  if (const auto* undefined = value.get<Undefined>(); undefined != nullptr) return out;
  return wrong("a list, a map or a text", value);
}

Result<Value> item_of(const Value& container, const Value& index) {
  const auto* name = index.get<std::string>();
  if (const Map* map = container.map(); map != nullptr && name != nullptr) {
    const Value* found = chat::find(*map, *name);
    return found != nullptr ? *found : Value(Undefined{*name});
  }
  if (!container.is_defined())
    return input_error("expected a value with \"" + printable(to_text(index)) + "\" in it, found " +
                       type_name(container) + ". Give the messages the form this template is for");
  const auto* whole = index.get<std::int64_t>();
  if (whole == nullptr || (container.list() == nullptr && container.get<std::string>() == nullptr))
    return Value(Undefined{to_text(index)});
  CTK_TRY(const List items, items_of(container));
  const auto count = static_cast<std::int64_t>(items.size());
  const std::int64_t at = *whole < 0 ? *whole + count : *whole;
  return at >= 0 && at < count ? items[static_cast<std::size_t>(at)] : Value(Undefined{to_text(index)});
}

Result<Value> slice_of(const Value& container, const Value* begin, const Value* end, const Value* step) {
  CTK_TRY(const List items, items_of(container));
  const auto count = static_cast<std::int64_t>(items.size());
  const auto whole = [](const Value* value, std::int64_t fallback) -> Result<std::int64_t> {
    if (value == nullptr || value->get<None>() != nullptr) return fallback;
    if (const auto* number = value->get<std::int64_t>())
      return std::clamp<std::int64_t>(*number, -(1LL << 40), 1LL << 40);
    return wrong("a whole number as part of a slice", *value);
  };
  CTK_TRY(const std::int64_t by, whole(step, 1));
  if (by == 0) return input_error("a slice: expected a step that is not 0, found 0. Correct the template");
  const auto place = [&](std::int64_t at) {
    at += at < 0 ? count : 0;
    return by > 0 ? std::clamp<std::int64_t>(at, 0, count) : std::clamp<std::int64_t>(at, -1, count - 1);
  };
  const bool has_begin = begin != nullptr && begin->get<None>() == nullptr;
  const bool has_end = end != nullptr && end->get<None>() == nullptr;
  CTK_TRY(const std::int64_t first, whole(begin, 0));
  CTK_TRY(const std::int64_t last, whole(end, 0));
  std::int64_t at = has_begin ? place(first) : by > 0 ? 0 : count - 1;
  const std::int64_t stop = has_end ? place(last) : by > 0 ? count : -1;
  List out;
  for (; by > 0 ? at < stop : at > stop; at += by) out.push_back(items[static_cast<std::size_t>(at)]);
  if (container.get<std::string>() == nullptr) return Value(std::move(out));
  std::string text;
  for (const Value& c : out) text += to_text(c);
  return Value(std::move(text));
}

Result<bool> contains(const Value& container, const Value& item) {
  if (const auto* text = container.get<std::string>()) {
    CTK_TRY(const std::string part, text_of(item));
    return text->find(part) != std::string::npos;
  }
  if (container.list() == nullptr && container.map() == nullptr) return wrong("a list, a map or a text", container);
  CTK_TRY(const List items, items_of(container));
  return std::ranges::any_of(items, [&](const Value& one) { return are_equal(one, item); });
}

}  // namespace ctk::data::chat
