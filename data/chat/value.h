// What a chat template computes with: Jinja's values, those that templates of checkpoints use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ctk::data::chat {

struct Undefined {
  std::string name;  // for messages
};
struct None {};

struct Value;
using List = std::vector<Value>;
using Map = std::vector<std::pair<std::string, Value>>;  // in order of insertion, as Python keeps it

struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, std::string, std::shared_ptr<List>, std::shared_ptr<Map>>
      held;

  Value() = default;
  Value(None none) : held(none) {}
  Value(Undefined undefined) : held(std::move(undefined)) {}
  Value(bool truth) : held(truth) {}
  Value(std::int64_t number) : held(number) {}
  Value(double number) : held(number) {}
  Value(std::string text) : held(std::move(text)) {}
  Value(const char* text) : held(std::string(text)) {}
  Value(List list) : held(std::make_shared<List>(std::move(list))) {}
  Value(Map map) : held(std::make_shared<Map>(std::move(map))) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&held);
  }
  const List* list() const { return get<std::shared_ptr<List>>() ? get<std::shared_ptr<List>>()->get() : nullptr; }
  Map* map() const { return get<std::shared_ptr<Map>>() ? get<std::shared_ptr<Map>>()->get() : nullptr; }
  bool is_defined() const { return !std::holds_alternative<Undefined>(held); }
};

const Value* find(const Map& map, std::string_view key);
bool is_true(const Value& value);                                         // as Python's bool()
bool are_equal(const Value& a, const Value& b);                           // as Python's ==
std::string type_name(const Value& value);                                // "a list", for messages
std::string to_text(const Value& value);                                  // as Python's str()
std::string to_json(const Value& value, int indent = -1, int level = 0);  // as json.dumps(..., ensure_ascii=False)

}  // namespace ctk::data::chat
