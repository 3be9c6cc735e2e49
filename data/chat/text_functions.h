// What filters and methods do to texts, as Python does it. Internal to data/chat.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "data/chat/operations.h"

namespace ctk::data::chat {

// "expected <expected>, found a list. ..."
Error wrong(const std::string& expected, const Value& found);
Error too_long();  // past kMostText
// Errors: input (no text).
Result<std::string> text_of(const Value& value);

std::vector<std::string> characters(const std::string& text);
// Without characters of `set` (white space where there is none) at its ends.
std::string stripped(const std::string& text, const std::string* set, bool left, bool right);
std::string upper(std::string text);  // of ASCII
std::string capitalized(const std::string& text);
std::string titled(const std::string& text);
// Errors: input (longer than kMostText).
Result<std::string> replaced(const std::string& text, const std::string& old, const std::string& fresh);
List split(const std::string& text, const std::string* separator);  // null: at runs of white space

Error unknown_operation(const char* kind, const std::string& name, const std::string& known);
// The row of that name. Errors: input (none: lists those there are).
template <class Row, std::size_t count>
Result<Row> look_up(const std::pair<std::string_view, Row> (&rows)[count], const char* kind, const std::string& name) {
  std::string known;
  for (const auto& [row_name, row] : rows) {
    if (row_name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row_name);
  }
  return unknown_operation(kind, name, known);
}

}  // namespace ctk::data::chat
