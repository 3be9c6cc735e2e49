// The cursor of the text form's parser.
#include "graph/text_scan.h"

#include <bit>
#include <cmath>

namespace ctk::graph::text {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_number_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.' || c == ':';
}

}  // namespace

void Cursor::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
}

void Cursor::skip_empty_lines() {
  while (!at_end()) {
    skip_spaces();
    if (!at_end() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_end() || text_[at_] != '\n') return;
    ++at_;
    ++line_;
    line_start_ = at_;
  }
}

Status Cursor::end_line() {
  skip_spaces();
  if (!at_line_end()) return expected("the end of the line");
  return {};
}

char Cursor::peek() {
  skip_spaces();
  return at_line_end() ? '\0' : text_[at_];
}

bool Cursor::take(char c) {
  if (peek() != c || at_line_end()) return false;
  ++at_;
  return true;
}

Status Cursor::expect(char c) {
  if (take(c)) return {};
  return expected(std::string("'") + c + "'");
}

bool Cursor::take_keyword(std::string_view word) {
  skip_spaces();
  if (!text_.substr(at_).starts_with(word)) return false;
  const std::size_t after = at_ + word.size();
  if (after < text_.size() && (is_word_char(text_[after]) || text_[after] == ':')) return false;
  at_ = after;
  return true;
}

Status Cursor::expect_keyword(std::string_view word) {
  if (take_keyword(word)) return {};
  return expected("\"" + std::string(word) + "\"");
}

std::string_view Cursor::bare_word() {
  skip_spaces();
  const std::size_t start = at_;
  while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

std::string_view Cursor::number_token() {
  skip_spaces();
  const std::size_t start = at_;
  while (at_ < text_.size() && is_number_char(text_[at_])) ++at_;
  return text_.substr(start, at_ - start);
}

Status Cursor::word(std::string& out, bool allow_colon) {
  if (peek() == '"') return string(out);
  const std::size_t start = at_;
  while (at_ < text_.size() && (is_word_char(text_[at_]) || (allow_colon && text_[at_] == ':'))) ++at_;
  while (at_ > start && text_[at_ - 1] == ':') --at_;  // a ':' after a name is punctuation
  if (at_ == start) return expected("a word or a quoted string");
  out.assign(text_, start, at_ - start);
  return {};
}

Status Cursor::string(std::string& out) {
  if (peek() != '"') return expected("a quoted string");
  out.clear();
  const Cursor before = *this;
  ++at_;
  while (!at_line_end()) {
    const char c = text_[at_++];
    if (c == '"') return {};
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at_line_end()) return before.expected("a string that closes on its line");
    const char escape = text_[at_++];
    switch (escape) {
      case '"':
      case '\\':
        out += escape;
        break;
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'x': {
        const int high = at_ + 1 < text_.size() ? hex_digit(text_[at_]) : -1;
        const int low = high >= 0 ? hex_digit(text_[at_ + 1]) : -1;
        if (low < 0) return expected("two hexadecimal digits after \\x");
        out += static_cast<char>(high * 16 + low);
        at_ += 2;
        break;
      }
      default:
        --at_;
        return expected("one of \" \\ n t r x after a backslash");
    }
  }
  return before.expected("a string that closes on its line");
}

Status Cursor::real(float& out) {
  const Cursor before = *this;
  if (parse_float(number_token(), out)) return {};
  return before.expected("a number");
}

Error Cursor::expected(const std::string& what) const {
  std::size_t at = at_;
  while (at < text_.size() && text_[at] == ' ') ++at;
  const std::size_t end = std::min({text_.find('\n', at), text_.size(), at + 24});
  std::string found;
  append_string(found, text_.substr(at, end - at));
  return wrong("expected " + what + ", found " + (at >= end ? "the end of the line" : found));
}

Error Cursor::wrong(const std::string& message) const {
  return input_error("line " + std::to_string(line_) + ", column " + std::to_string(at_ - line_start_ + 1) + ": " +
                     message);
}

bool parse_nan_bits(std::string_view token, int digits, std::uint64_t& bits) {
  if (!token.starts_with("nan:") || token.size() != 4 + static_cast<std::size_t>(digits)) return false;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data() + 4, end, bits, 16);
  return error == std::errc() && stop == end;
}

bool parse_float(std::string_view token, float& out) {
  std::uint64_t bits = 0;
  if (parse_nan_bits(token, 8, bits)) {
    out = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return std::isnan(out);
  }
  if (token == "nan") {
    out = std::bit_cast<float>(0x7fc00000u);
    return true;
  }
  return parse_whole(token, out) && !std::isnan(out);
}

}  // namespace ctk::graph::text
