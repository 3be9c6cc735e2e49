#include "data/chat/operations.h"

#include <algorithm>
#include <optional>

#include "core/printable.h"
#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data::chat {
namespace {

Error wrong(const std::string& expected, const Value& found) {
  return input_error("expected " + expected + ", found " + type_name(found) +
                     ". Give the messages the form this template is for");
}

Result<std::string> text_of(const Value& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  return wrong("a text", value);
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size(); i += out.back().size())
    out.push_back(text.substr(i, decode_utf8(text, i).length));
  return out;
}

bool is_space(const std::string& character) {
  // Python's str.strip() takes four separators along that Unicode's White_Space does not list.
  const char32_t code = decode_utf8(character, 0).code;
  return is_whitespace(code) || (code >= 0x1c && code <= 0x1f);
}

// Without characters of `set` (white space where there is none) at its ends.
std::string stripped(const std::string& text, const std::string* set, bool left, bool right) {
  const std::vector<std::string> all = characters(text);
  const std::vector<std::string> listed = set != nullptr ? characters(*set) : std::vector<std::string>();
  const auto goes = [&](const std::string& c) {
    return set != nullptr ? std::ranges::count(listed, c) != 0 : is_space(c);
  };
  std::size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && end > begin && goes(all[end - 1])) --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += all[i];
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string capitalized(const std::string& text) {
  std::string low = to_lower(text);
  if (!low.empty()) low[0] = upper(low.substr(0, 1))[0];
  return low;
}

std::string titled(const std::string& text) {
  std::string out = to_lower(text);
  bool is_start = true;
  for (char& c : out) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (static_cast<unsigned char>(c) & 0x80) != 0;
    if (is_letter && is_start && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    is_start = !is_letter;
  }
  return out;
}

Error too_long() {
  return input_error("expected texts of at most 64 MB, found more. Shorten the messages");
}

Result<std::string> replaced(const std::string& text, const std::string& old, const std::string& fresh) {
  if (old.empty()) return text;
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, from)) {
    out += text.substr(from, at - from) + fresh;
    from = at + old.size();
    if (out.size() > kMostText) return too_long();
  }
  return out + text.substr(from);
}

List split(const std::string& text, const std::string* separator) {
  List out;
  if (separator == nullptr) {
    std::string word;
    for (const std::string& c : characters(text)) {
      if (!is_space(c)) {
        word += c;
      } else if (!word.empty()) {
        out.emplace_back(std::move(word));
        word.clear();
      }
    }
    if (!word.empty()) out.emplace_back(std::move(word));
    return out;
  }
  std::size_t from = 0;
  for (std::size_t at = text.find(*separator); at != std::string::npos; at = text.find(*separator, from)) {
    out.emplace_back(text.substr(from, at - from));
    from = at + separator->size();
  }
  out.emplace_back(text.substr(from));
  return out;
}

// ---- filters

using Filter = Result<Value> (*)(const Value& value, const Given& given);

Result<Value> filter_trim(const Value& value, const Given&) {
  return Value(stripped(to_text(value), nullptr, true, true));
}
Result<Value> filter_lower(const Value& value, const Given&) {
  return Value(to_lower(to_text(value)));
}
Result<Value> filter_upper(const Value& value, const Given&) {
  return Value(upper(to_text(value)));
}
Result<Value> filter_capitalize(const Value& value, const Given&) {
  return Value(capitalized(to_text(value)));
}
Result<Value> filter_title(const Value& value, const Given&) {
  return Value(titled(to_text(value)));
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
Result<Value> filter_default(const Value& value, const Given& given) {
  const Value* other = given.find(0, "default_value");
  const Value* for_false = given.find(1, "boolean");
  const bool is_kept = value.is_defined() && (for_false == nullptr || !is_true(*for_false) || is_true(value));
  return is_kept ? value : other != nullptr ? *other : Value("");
}
Result<Value> filter_replace(const Value& value, const Given& given) {
  const Value *old = given.find(0, "old"), *fresh = given.find(1, "new");
  if (old == nullptr || fresh == nullptr) return input_error("replace: expected two texts, found fewer. Give both");
  CTK_TRY(std::string text, replaced(to_text(value), to_text(*old), to_text(*fresh)));
  return Value(std::move(text));
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
Result<Value> filter_items(const Value& value, const Given&) {
  if (value.map() == nullptr) return wrong("a map", value);
  List pairs;
  for (const auto& [key, item] : *value.map()) pairs.emplace_back(List{Value(key), item});
  return Value(std::move(pairs));
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

template <class Row, std::size_t count>
Result<Row> look_up(const std::pair<std::string_view, Row> (&rows)[count], const char* kind, const std::string& name) {
  std::string known;
  for (const auto& [row_name, row] : rows) {
    if (row_name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row_name);
  }
  return input_error(std::string(kind) + " \"" + printable(name) + "\": expected one of " + known +
                     ", found another. Change the template, or write the prompt out and use --prompt");
}

}  // namespace

const Value* Given::find(std::size_t place, std::string_view name) const {
  if (place < by_place.size()) return &by_place[place];
  for (const auto& [given, value] : by_name) {
    if (given == name) return &value;
  }
  return nullptr;
}

Result<Value> apply_filter(const std::string& name, const Value& value, const Given& given) {
  CTK_TRY(const Filter filter, look_up(kFilters, "filter", name));
  return filter(value, given);
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
