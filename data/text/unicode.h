// Character classes, case and normal forms, as the `tokenizers` package has them (unicode_tables.def).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ctk::data {

// None of these holds for kInvalidByte.
bool is_numeric(char32_t code);      // general category N
bool is_whitespace(char32_t code);   // property White_Space
bool is_word(char32_t code);         // letters, marks, decimal digits, connectors
bool is_punctuation(char32_t code);  // general category P, and all printable ASCII that is neither letter nor digit
bool is_control(char32_t code);      // what BertNormalizer drops
bool is_chinese(char32_t code);      // what BertNormalizer puts spaces around
bool is_nonspacing(char32_t code);   // the accents that BertNormalizer drops
bool is_mark(char32_t code);         // general category M
bool is_joining(char32_t code);      // one grapheme with the character before it

// Lower case of each character by itself. Bytes that are no UTF-8 stay.
std::string to_lower(std::string_view text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
// Bytes that are no UTF-8 stay, and end a run of combining marks.
std::string normalize(std::string_view text, NormalForm form);

// "\x{A}-\x{B}..." of the characters newer than Unicode 14 whose general category starts with `category`.
std::string newer_characters(std::string_view category);

}  // namespace ctk::data
