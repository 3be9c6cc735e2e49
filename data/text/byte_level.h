// GPT-2's alphabet: every byte as one printable character, so that vocabularies are text.
#pragma once

#include <string>
#include <string_view>

namespace ctk::data {

// Printable Latin-1 bytes stand for themselves; the other 68, in order, are U+0100 and on.
void append_byte_level(std::string& out, std::string_view bytes);
// The bytes that `token` stands for; the token itself where a character of it stands for none.
std::string from_byte_level(std::string_view token);

}  // namespace ctk::data
