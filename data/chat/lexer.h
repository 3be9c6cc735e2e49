// A chat template cut into texts and the tokens inside its tags. Internal to data/chat.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace ctk::data::chat {

struct Token {
  enum class Kind { text, print_begin, print_end, block_begin, block_end, name, string, whole, real, sign, end };
  Kind kind = Kind::end;
  std::string text;  // of text and string: what it stands for; of sign: "==", "("
  int line = 1;
};

// Line ends behind block tags and spaces before them are dropped, as are white spaces beside "-%}" and "{%-".
// Errors: input (line, expected, found): a tag or string that does not end, a character that begins nothing.
Result<std::vector<Token>> cut(std::string_view source);

}  // namespace ctk::data::chat
