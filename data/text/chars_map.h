// Character maps as sentencepiece compiles them: byte strings and what to write for each, found by a double-array trie.
//
//   bytes of the trie [uint32]   units [uint32 each]   texts, each ended by a zero byte
//
// A unit at place p: bits 0-7 the byte that leads to it, bit 8 whether a text ends here, bits 10-30 the offset, shifted
// by 8 more where bit 9 is set; the unit for byte c stands at p ^ offset ^ c, and the one at p ^ offset holds the place
// of the text. All numbers are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk::data {

class CharsMap {
 public:
  CharsMap() = default;
  // Errors: input (sizes that do not fit, offsets or texts outside the map; opens with `where`).
  static Result<CharsMap> read(std::string_view bytes, const std::string& where);

  struct Rule {
    std::size_t length = 0;  // bytes it stands for; 0: no rule
    std::string_view text;   // to write instead
  };
  bool is_empty() const { return units_.empty(); }
  Rule shortest(std::string_view text) const { return find(text, true); }  // of those for a start of `text`
  Rule longest(std::string_view text) const { return find(text, false); }

 private:
  Rule find(std::string_view text, bool takes_first) const;
  Status check(const std::string& where) const;
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace ctk::data
