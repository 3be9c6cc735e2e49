// Regular expressions as tokenizer files write them (Oniguruma's Ruby syntax), matched by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace ctk::data {

struct Match {
  std::size_t begin = 0, end = 0;  // bytes; may be empty
};

// The pattern in PCRE2's spelling: what the two read differently (\s, \w, \h, \p{Script}, (?m), characters newer than
// PCRE2's tables) is spelled out. Errors: input (nested or intersected classes and others that PCRE2 lacks).
Result<std::string> translate_pattern(std::string_view pattern, const std::string& where);

class Pattern {
 public:
  // Errors: input (not a regular expression; names the place in the pattern).
  static Result<std::shared_ptr<const Pattern>> compile(std::string_view pattern, const std::string& where);
  ~Pattern();

  // Finds matches in one text after another; for one thread.
  class Finder {
   public:
    explicit Finder(const Pattern& pattern);
    ~Finder();
    Finder(const Finder&) = delete;
    Finder& operator=(const Finder&) = delete;
    // Appends the leftmost matches that do not overlap. Bytes that are no UTF-8 never match, and the text before and
    // after them is looked at apart. Errors: input (the pattern backtracks without end on this text).
    Status find_all(std::string_view text, std::vector<Match>& matches);

   private:
    Status find_in(std::string_view text, std::size_t offset, std::vector<Match>& matches);
    const Pattern* pattern_;
    void* data_;
    void* context_;
    void* stack_;
  };

 private:
  Pattern() = default;
  std::string where_, source_;
  void* code_ = nullptr;
};

}  // namespace ctk::data
