// Inside the text form: a cursor over untrusted text. Nothing here indexes, allocates or loops by a number it has read.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "graph/text_lines.h"

namespace ctk::graph::text {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  // --- lines
  bool at_end() const { return at_ >= text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n'; }
  void skip_empty_lines();  // blank lines and comments
  Status end_line();        // expects nothing more on this line
  std::size_t line() const { return line_; }

  // --- pieces; leading spaces are skipped
  char peek();        // '\0' at the end of the line
  bool take(char c);  // takes c when it is next
  Status expect(char c);
  bool take_keyword(std::string_view word);  // whole words only
  Status expect_keyword(std::string_view word);
  // A bare or quoted word; in names a ':' may stand inside.
  Status word(std::string& out, bool allow_colon = false);
  Status string(std::string& out);  // quoted only
  std::string_view bare_word();     // may be empty
  std::string_view number_token();  // letters, digits and + - . :, may be empty
  template <class T>
  Status integer(T& out, T least, T most);
  Status real(float& out);

  // "line 3, column 7: expected a dtype, found "f33""
  Error expected(const std::string& what) const;
  Error wrong(const std::string& message) const;  // same place, message as it is

 private:
  void skip_spaces();
  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, line_start_ = 0;
};

// The whole token as a number. False when it is none, or out of range.
template <class T>
bool parse_whole(std::string_view token, T& out) {
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, out);
  return error == std::errc() && stop == end && !token.empty();
}
// "nan:BITS" of `digits` hexadecimal digits into a stored pattern.
bool parse_nan_bits(std::string_view token, int digits, std::uint64_t& bits);
// A float32 spelling of the grammar.
bool parse_float(std::string_view token, float& out);

template <class T>
Status Cursor::integer(T& out, T least, T most) {
  const Cursor before = *this;
  if (parse_whole(number_token(), out) && out >= least && out <= most) return {};
  return before.expected("a whole number in " + std::to_string(least) + ".." + std::to_string(most));
}

// --- text_value.cpp
// "dtype [sizes] data", or data alone after a declaration that says `known_dtype` and `known_shape`.
Result<Tensor> parse_tensor(Cursor& cursor, ConstantSource* source, const DType* known_dtype = nullptr,
                            const DeclaredShape* known_shape = nullptr);
Result<Attribute> parse_attribute(Cursor& cursor, ConstantSource* source);

}  // namespace ctk::graph::text
