#include "data/text/unicode.h"

#include <algorithm>
#include <cstdio>

#include "data/text/utf8.h"

namespace ctk::data {
namespace {

struct Range {
  char32_t first, last;
};
struct Mapping {
  char32_t code;
  const char* text;  // UTF-8
};
struct Composition {
  char32_t first, second, composed;
};
struct ClassRange {
  char32_t first, last;
  int value;
};
struct CategoryRange {
  char32_t first, last;
  const char* category;
};

#include "data/text/unicode_tables.def"

bool is_in(std::span<const Range> ranges, char32_t code) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code,
                                      [](char32_t c, const Range& range) { return c < range.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

const char* find_mapping(std::span<const Mapping> table, char32_t code) {
  const auto at = std::lower_bound(table.begin(), table.end(), code,
                                   [](const Mapping& entry, char32_t c) { return entry.code < c; });
  return at != table.end() && at->code == code ? at->text : nullptr;
}

int combining_class(char32_t code) {
  if (code < 0x300) return 0;
  const auto after = std::upper_bound(std::begin(kCombining), std::end(kCombining), code,
                                      [](char32_t c, const ClassRange& range) { return c < range.first; });
  return after != std::begin(kCombining) && code <= (after - 1)->last ? (after - 1)->value : 0;
}

// Hangul syllables are arithmetic: lead (19), vowel (21), tail (27 and none).
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
constexpr char32_t kVowels = 21, kTails = 28, kSyllables = 19 * kVowels * kTails;

char32_t compose(char32_t first, char32_t second) {
  if (first >= kLead && first < kLead + 19 && second >= kVowel && second < kVowel + kVowels)
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  if (first >= kSyllable && first < kSyllable + kSyllables && (first - kSyllable) % kTails == 0 && second > kTail &&
      second < kTail + kTails)
    return first + (second - kTail);
  const auto at = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
                                   [](const Composition& c, const std::pair<char32_t, char32_t>& pair) {
                                     return std::pair(c.first, c.second) < pair;
                                   });
  return at != std::end(kCompositions) && at->first == first && at->second == second ? at->composed : 0;
}

struct Coded {
  char32_t code;  // kInvalidByte: `byte` says which
  int combining;
  char byte = 0;
};

void append_decomposed(std::vector<Coded>& out, char32_t code, bool is_compatible) {
  if (code >= kSyllable && code < kSyllable + kSyllables) {
    const char32_t index = code - kSyllable;
    out.push_back({kLead + index / (kVowels * kTails), 0});
    out.push_back({kVowel + index / kTails % kVowels, 0});
    if (index % kTails != 0) out.push_back({kTail + index % kTails, 0});
    return;
  }
  const char* text = is_compatible ? find_mapping(kCompatibility, code) : nullptr;
  if (text == nullptr) text = find_mapping(kCanonical, code);
  if (text == nullptr) {
    out.push_back({code, combining_class(code)});
    return;
  }
  const std::string_view parts = text;
  for (std::size_t at = 0; at < parts.size();) {
    const Utf8Char c = decode_utf8(parts, at);
    out.push_back({c.code, combining_class(c.code)});
    at += c.length;
  }
}

// Marks between starters in the order of their classes.
void order_marks(std::vector<Coded>& chars) {
  for (std::size_t i = 0; i < chars.size();) {
    std::size_t end = i;
    while (end < chars.size() && chars[end].combining != 0) ++end;
    std::stable_sort(chars.begin() + static_cast<std::ptrdiff_t>(i), chars.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Coded& a, const Coded& b) { return a.combining < b.combining; });
    i = end + 1;
  }
}

// Joins each starter with the marks (and the starter) after it that nothing of the same or a higher class blocks.
void compose_all(std::vector<Coded>& chars) {
  std::size_t kept = 0, starter = chars.size();
  int last_class = -1;  // of the last character kept after the starter; -1: none
  for (std::size_t i = 0; i < chars.size(); ++i) {
    const Coded c = chars[i];
    if (starter < kept && (last_class < c.combining) && c.code != kInvalidByte && chars[starter].code != kInvalidByte) {
      if (const char32_t composed = compose(chars[starter].code, c.code)) {
        chars[starter].code = composed;
        continue;
      }
    }
    if (c.combining == 0) {
      starter = kept;
      last_class = -1;
    } else {
      last_class = c.combining;
    }
    chars[kept++] = c;
  }
  chars.resize(kept);
}

}  // namespace

bool is_numeric(char32_t code) {
  return code < 0x80 ? code >= '0' && code <= '9' : is_in(kNumeric, code);
}
bool is_whitespace(char32_t code) {
  return code < 0x80 ? code == ' ' || (code >= 9 && code <= 13) : is_in(kWhitespace, code);
}
bool is_word(char32_t code) {
  return is_in(kWord, code);
}
bool is_punctuation(char32_t code) {
  return is_in(kPunctuation, code);
}
bool is_control(char32_t code) {
  return is_in(kControl, code);
}
bool is_chinese(char32_t code) {
  return is_in(kChinese, code);
}
bool is_nonspacing(char32_t code) {
  return code >= 0x300 && is_in(kNonspacing, code);
}
bool is_mark(char32_t code) {
  return code >= 0x300 && is_in(kMark, code);
}
bool is_joining(char32_t code) {
  return code >= 0x300 && is_in(kJoining, code);
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code < 0x80)
      out += static_cast<char>(c.code >= 'A' && c.code <= 'Z' ? c.code + 32 : c.code);
    else if (const char* lower = find_mapping(kLower, c.code))
      out += lower;
    else
      out += text.substr(at, c.length);
    at += c.length;
  }
  return out;
}

std::string normalize(std::string_view text, NormalForm form) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  const bool is_compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<Coded> chars;
  chars.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text, at);
    if (c.code < 0x80)
      chars.push_back({c.code, 0});
    else if (c.code == kInvalidByte)
      chars.push_back({c.code, 0, text[at]});
    else
      append_decomposed(chars, c.code, is_compatible);
    at += c.length;
  }
  order_marks(chars);
  if (form == NormalForm::nfc || form == NormalForm::nfkc) compose_all(chars);
  std::string out;
  out.reserve(text.size());
  for (const Coded& c : chars)
    if (c.code == kInvalidByte)
      out += c.byte;
    else
      append_utf8(out, c.code);
  return out;
}

std::string newer_characters(std::string_view category) {
  std::string out;
  char buffer[40];
  for (const CategoryRange& range : kNewer) {
    if (!std::string_view(range.category).starts_with(category)) continue;
    std::snprintf(buffer, sizeof buffer, "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.first),
                  static_cast<unsigned>(range.last));
    out += buffer;
  }
  return out;
}

}  // namespace ctk::data
