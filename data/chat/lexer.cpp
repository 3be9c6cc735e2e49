#include "data/chat/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/printable.h"

namespace ctk::data::chat {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\v\f";
// The longer ones first.
constexpr std::array<std::string_view, 24> kSigns = {"==", "!=", "<=", ">=", "//", "(", ")", "[", "]", "{", "}", ",",
                                                     ".",  ":",  "|",  "~",  "+",  "-", "*", "/", "%", "=", "<", ">"};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    // The last line end of a template is not part of its text.
    if (source_.ends_with('\n')) source_.remove_suffix(1);
  }

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const std::size_t open = next_tag();
      const bool has_tag = open < source_.size();
      const char kind = has_tag ? source_[open + 1] : '\0';
      const char sign = has_tag && open + 2 < source_.size() ? source_[open + 2] : '\0';
      add_text(source_.substr(at_, open - at_), kind, sign);
      if (!has_tag) break;
      line_ += static_cast<int>(std::ranges::count(source_.substr(at_, open - at_), '\n'));
      at_ = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      CTK_CHECK(kind == '#' ? skip_comment() : read_tag(kind == '{'));
    }
    tokens_.push_back({Token::Kind::end, "", line_});
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    }
    return source_.size();
  }

  // `kind` and `sign` of the tag behind the text.
  void add_text(std::string_view text, char kind, char sign) {
    const bool starts_line = tokens_.empty() && at_ == 0;
    if (strips_left_) {
      text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    } else if (trims_line_end_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    // Spaces before a block tag that is the first thing in its line.
    if (sign == '-') {
      const std::size_t last = text.find_last_not_of(kSpaces);
      text = last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
    } else if ((kind == '%' || kind == '#') && sign != '+') {
      const std::size_t last = text.find_last_not_of(" \t\v\f\r");
      const bool is_whole_text = last == std::string_view::npos;
      // Where the text is all spaces, what stands before it decides: a line end that was trimmed, or nothing.
      const bool after_line_end = is_whole_text && (starts_line || (trims_line_end_ && ate_line_end(text)));
      if (!is_whole_text && text[last] == '\n') {
        text = text.substr(0, last + 1);
      } else if (after_line_end) {
        text = {};
      }
    }
    strips_left_ = trims_line_end_ = false;
    if (!text.empty()) tokens_.push_back({Token::Kind::text, std::string(text), line_});
  }

  bool ate_line_end(std::string_view rest) const {
    const auto before = static_cast<std::size_t>(rest.data() - source_.data());
    return before > 0 && source_[before - 1] == '\n';
  }

  Status skip_comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return fails("\"#}\" behind \"{#\"", "the end of the template");
    strips_left_ = end > at_ && source_[end - 1] == '-';
    trims_line_end_ = true;
    line_ += static_cast<int>(std::ranges::count(source_.substr(at_, end - at_), '\n'));
    at_ = end + 2;
    return {};
  }

  Status read_tag(bool is_print) {
    const std::string close = is_print ? "}}" : "%}";
    tokens_.push_back({is_print ? Token::Kind::print_begin : Token::Kind::block_begin, "", line_});
    int depth = 0;  // of braces, so that "}}" may end a map
    for (;;) {
      while (at_ < source_.size() && kSpaces.find(source_[at_]) != std::string_view::npos) {
        line_ += source_[at_] == '\n';
        ++at_;
      }
      if (at_ >= source_.size()) return fails("\"" + close + "\"", "the end of the template");
      const std::string_view rest = source_.substr(at_);
      const bool has_sign = rest.starts_with("-" + close) || rest.starts_with("+" + close);
      if (has_sign || (depth == 0 && rest.starts_with(close))) {
        strips_left_ = rest[0] == '-';
        trims_line_end_ = !is_print && rest[0] != '+';
        at_ += close.size() + (has_sign ? 1 : 0);
        tokens_.push_back({is_print ? Token::Kind::print_end : Token::Kind::block_end, "", line_});
        return {};
      }
      if (rest[0] == '{') ++depth;
      if (rest[0] == '}') --depth;
      CTK_CHECK(read_token(rest));
    }
  }

  Status read_token(std::string_view rest) {
    const char first = rest[0];
    if (first == '"' || first == '\'') return read_string(first);
    std::size_t length = 0;
    if (begins_name(first)) {
      while (length < rest.size() && (begins_name(rest[length]) || is_digit(rest[length]))) ++length;
      return take(Token::Kind::name, rest.substr(0, length));
    }
    if (is_digit(first)) {
      while (length < rest.size() && is_digit(rest[length])) ++length;
      const bool is_real = length + 1 < rest.size() && rest[length] == '.' && is_digit(rest[length + 1]);
      if (is_real) {
        ++length;
        while (length < rest.size() && is_digit(rest[length])) ++length;
      }
      if (length > 18) return fails("a number of at most 18 digits", std::to_string(length));
      return take(is_real ? Token::Kind::real : Token::Kind::whole, rest.substr(0, length));
    }
    for (const std::string_view sign : kSigns) {
      if (rest.starts_with(sign)) return take(Token::Kind::sign, sign);
    }
    return fails("a name, a value or an operator", "\"" + printable(std::string(1, first)) + "\"");
  }

  Status take(Token::Kind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
    at_ += text.size();
    return {};
  }

  Status read_string(char quote) {
    std::string text;
    for (std::size_t i = at_ + 1; i < source_.size(); ++i) {
      const char c = source_[i];
      if (c == quote) {
        tokens_.push_back({Token::Kind::string, std::move(text), line_});
        at_ = i + 1;
        return {};
      }
      line_ += c == '\n';
      if (c != '\\' || i + 1 == source_.size()) {
        text += c;
        continue;
      }
      constexpr std::string_view kNames = "ntr\\'\"", kMeant = "\n\t\r\\'\"";
      const std::size_t found = kNames.find(source_[++i]);
      if (found == std::string_view::npos) text += '\\';
      text += found == std::string_view::npos ? source_[i] : kMeant[found];
    }
    return fails("a closing quote", "the end of the template");
  }

  Error fails(const std::string& expected, const std::string& found) const {
    return input_error("line " + std::to_string(line_) + ": expected " + expected + ", found " + found +
                       ". Correct the template");
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool strips_left_ = false, trims_line_end_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> cut(std::string_view source) {
  std::string lines;  // every line end is one character, as Jinja has it
  lines.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      lines += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      lines += '\n';
    }
  }
  return Lexer(lines).run();
}

}  // namespace ctk::data::chat
