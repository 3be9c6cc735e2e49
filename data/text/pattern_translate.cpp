// Oniguruma's Ruby syntax in PCRE2's spelling. Only what differs is touched:
//   \s \S \w \W \d \h \H   as character classes spelled out (PCRE2's \s has U+180E, its \w lacks marks)
//   \p{Letter} \p{Han}     long category names shortened; a script means the script, not its extensions
//   \p{L}                  with the characters that got their category after PCRE2 10.42 (Unicode 14)
//   (?m)                   "dot matches newline" is (?s)
//   \u3042                 \x{3042}
#include <utility>

#include "core/printable.h"
#include "data/text/pattern.h"
#include "data/text/unicode.h"

namespace ctk::data {
namespace {

constexpr std::string_view kSpace = "\\x09-\\x0d\\x85\\p{Z}";
constexpr std::string_view kNotSpace =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";

constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {{"letter", "L"},
                                                                        {"uppercaseletter", "Lu"},
                                                                        {"lowercaseletter", "Ll"},
                                                                        {"titlecaseletter", "Lt"},
                                                                        {"modifierletter", "Lm"},
                                                                        {"otherletter", "Lo"},
                                                                        {"mark", "M"},
                                                                        {"nonspacingmark", "Mn"},
                                                                        {"spacingmark", "Mc"},
                                                                        {"enclosingmark", "Me"},
                                                                        {"number", "N"},
                                                                        {"decimalnumber", "Nd"},
                                                                        {"digit", "Nd"},
                                                                        {"letternumber", "Nl"},
                                                                        {"othernumber", "No"},
                                                                        {"punctuation", "P"},
                                                                        {"punct", "P"},
                                                                        {"symbol", "S"},
                                                                        {"mathsymbol", "Sm"},
                                                                        {"currencysymbol", "Sc"},
                                                                        {"modifiersymbol", "Sk"},
                                                                        {"othersymbol", "So"},
                                                                        {"separator", "Z"},
                                                                        {"spaceseparator", "Zs"},
                                                                        {"other", "C"},
                                                                        {"control", "Cc"},
                                                                        {"cntrl", "Cc"},
                                                                        {"format", "Cf"}};

std::string category_class(std::string_view category) {
  return "\\p{" + std::string(category) + "}" + newer_characters(category);
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        CTK_CHECK(escape());
      } else if (in_class_) {
        CTK_CHECK(class_character());
      } else if (c == '[') {
        in_class_ = true;
        take(1);
        if (next_is("^")) take(1);
        if (next_is("]")) take(1);
      } else if (in_.substr(at_).starts_with("(?")) {
        group_flags();
      } else if (c == '}' && in_.substr(at_).starts_with("}+")) {
        return unsupported("an interval followed by '+'");
      } else {
        take(1);
      }
    }
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  void take(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  // `members` of a character class, as a class of its own where we are in none.
  void put(std::string_view members, bool is_negated = false) {
    if (in_class_)
      out_ += members;
    else
      out_ += (is_negated ? "[^" : "[") + std::string(members) + "]";
  }
  Error unsupported(const std::string& what) const {
    return input_error(where_ + ": expected a regular expression without " + what + ", found \"" + printable(in_) +
                       "\" (byte " + std::to_string(at_) + "). Write the pattern without it.");
  }

  Status class_character() {
    if (next_is("[:")) {
      const std::size_t end = in_.find(":]", at_);
      if (end != std::string_view::npos) {
        take(end + 2 - at_);
        return {};
      }
    }
    if (next_is("[")) return unsupported("a class inside a class");
    if (next_is("&&")) return unsupported("an intersection of classes");
    if (next_is("]")) in_class_ = false;
    take(1);
    return {};
  }

  // (?m: and (?mi) up to the flags' end; other groups as they are.
  void group_flags() {
    take(2);
    const std::size_t end = in_.find_first_not_of("imx-", at_);
    if (end == std::string_view::npos || (in_[end] != ':' && in_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  Status escape() {
    if (at_ + 1 >= in_.size()) {
      take(1);  // PCRE2 says what is wrong
      return {};
    }
    const char kind = in_[at_ + 1];
    if (kind == 'p' || kind == 'P') return property(kind == 'P');
    if (kind == 'u' && at_ + 6 <= in_.size()) {
      out_ += "\\x{" + std::string(in_.substr(at_ + 2, 4)) + "}";
      at_ += 6;
      return {};
    }
    const bool is_negated = kind == 'S' || kind == 'W' || kind == 'D' || kind == 'H';
    std::string members;
    switch (kind) {
      case 's':
      case 'S':
        members = in_class_ && is_negated ? kNotSpace : kSpace;
        break;
      case 'w':
      case 'W':
        members = category_class("L") + category_class("M") + category_class("Nd") + category_class("Pc");
        break;
      case 'd':
      case 'D':
        members = category_class("Nd");
        break;
      case 'h':
      case 'H':
        members = "0-9a-fA-F";
        break;
      default:
        take(2);
        return {};
    }
    if (in_class_ && is_negated && kind != 'S') return unsupported("\\" + std::string(1, kind) + " inside a class");
    at_ += 2;
    put(members, is_negated);
    return {};
  }

  Status property(bool is_negated) {
    const std::size_t end = in_.find('}', at_);
    if (!in_.substr(at_ + 2).starts_with("{") || end == std::string_view::npos) {
      take(2);
      return {};
    }
    std::string name(in_.substr(at_ + 3, end - at_ - 3));
    if (name.starts_with("^")) {
      name.erase(0, 1);
      is_negated = !is_negated;
    }
    std::string plain;
    for (char c : name)
      if (c != '_' && c != ' ' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    for (const auto& [longer, shorter] : kLongNames)
      if (plain == longer) name = shorter;
    at_ = end + 1;
    if (name.size() <= 2) {
      if (in_class_ && is_negated)
        out_ += "\\P{" + name + "}";
      else
        put(category_class(name), is_negated);
      return {};
    }
    const bool is_binary = plain == "alphabetic" || plain == "uppercase" || plain == "lowercase" || plain == "emoji" ||
                           plain == "any" || plain == "whitespace" || plain == "ideographic";
    out_ += std::string(is_negated ? "\\P{" : "\\p{") + (is_binary ? "" : "sc:") + name + "}";
    return {};
  }

  std::string_view in_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

Result<std::string> translate_pattern(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace ctk::data
