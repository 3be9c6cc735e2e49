// Filters, tests and methods of chat templates, each a row of a table. Internal to data/chat.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "data/chat/value.h"

namespace ctk::data::chat {

constexpr std::size_t kMostText = std::size_t{64} << 20, kMostItems = 1'000'000;  // of any value

struct Given {
  std::vector<Value> by_place;
  std::vector<std::pair<std::string, Value>> by_name;

  // The argument at `place` or of that name; null where it was left out.
  const Value* find(std::size_t place, std::string_view name) const;
};

// Errors: input (an unknown name: lists the known; a value of the wrong kind: expected, found).
Result<Value> apply_filter(const std::string& name, const Value& value, const Given& given);
Result<bool> apply_test(const std::string& name, const Value& value, const Given& given);
Result<Value> call_method(const std::string& name, const Value& self, const Given& given);

// a sign b, for + - * / // % < > <= >=. Errors: input (kinds that do not go together, 0 as divisor, numbers too large).
Result<Value> arithmetic(const std::string& sign, const Value& a, const Value& b);
// range(end), range(begin, end, step). Errors: input (no whole numbers, step 0, past kMostItems).
Result<Value> range_of(const Given& given);

// container[index] and container.name; undefined where it is not there.
Result<Value> item_of(const Value& container, const Value& index);
// container[begin:end:step] as Python has it; null: left out.
Result<Value> slice_of(const Value& container, const Value* begin, const Value* end, const Value* step);
// Membership as Python's `in`.
Result<bool> contains(const Value& container, const Value& item);
// What a loop runs over: items of a list, keys of a map, characters of a text.
Result<List> items_of(const Value& value);

}  // namespace ctk::data::chat
