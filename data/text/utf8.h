// UTF-8 one character at a time, over bytes that need not be valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ctk::data {

constexpr char32_t kInvalidByte = 0xFFFFFFFF;  // above every code point

struct Utf8Char {
  char32_t code = 0;       // kInvalidByte where the bytes are no UTF-8
  std::size_t length = 1;  // bytes; an invalid byte stands alone
};

// The character that starts at `at` < text.size(). Overlong forms, surrogates and what is above U+10FFFF are invalid.
Utf8Char decode_utf8(std::string_view text, std::size_t at);
// Where the character that ends at `end` > 0 starts.
std::size_t previous_utf8(std::string_view text, std::size_t end);
void append_utf8(std::string& text, char32_t code);
// Length of the longest valid start of `text`.
std::size_t valid_utf8_prefix(std::string_view text);

}  // namespace ctk::data
