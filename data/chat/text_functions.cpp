#include "data/chat/text_functions.h"

#include <algorithm>

#include "core/printable.h"
#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data::chat {
namespace {

bool is_space(const std::string& character) {
  // Python's str.strip() takes four separators along that Unicode's White_Space does not list.
  const char32_t code = decode_utf8(character, 0).code;
  return is_whitespace(code) || (code >= 0x1c && code <= 0x1f);
}

}  // namespace

Error wrong(const std::string& expected, const Value& found) {
  return input_error("expected " + expected + ", found " + type_name(found) +
                     ". Give the messages the form this template is for");
}

Error unknown_operation(const char* kind, const std::string& name, const std::string& known) {
  return input_error(std::string(kind) + " \"" + printable(name) + "\": expected one of " + known +
                     ", found another. Change the template, or write the prompt out and use --prompt");
}

Result<std::string> text_of(const Value& value) {
  if (const auto* text = value.get<std::string>()) return *text;
  return wrong("a text", value);
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < text.size(); i += out.back().size())
    out.push_back(text.substr(i, decode_utf8(text, i).length));
  return out;
}

std::string stripped(const std::string& text, const std::string* set, bool left, bool right) {
  const std::vector<std::string> all = characters(text);
  const std::vector<std::string> listed = set != nullptr ? characters(*set) : std::vector<std::string>();
  const auto goes = [&](const std::string& c) {
    return set != nullptr ? std::ranges::count(listed, c) != 0 : is_space(c);
  };
  std::size_t begin = 0, end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && end > begin && goes(all[end - 1])) --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += all[i];
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string capitalized(const std::string& text) {
  std::string low = to_lower(text);
  if (!low.empty()) low[0] = upper(low.substr(0, 1))[0];
  return low;
}

std::string titled(const std::string& text) {
  std::string out = to_lower(text);
  bool is_start = true;
  for (char& c : out) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (static_cast<unsigned char>(c) & 0x80) != 0;
    if (is_letter && is_start && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    is_start = !is_letter;
  }
  return out;
}

Error too_long() {
  return input_error("expected texts of at most 64 MB, found more. Shorten the messages");
}

Result<std::string> replaced(const std::string& text, const std::string& old, const std::string& fresh) {
  if (old.empty()) return text;
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, from)) {
    out += text.substr(from, at - from) + fresh;
    from = at + old.size();
    if (out.size() > kMostText) return too_long();
  }
  return out + text.substr(from);
}

List split(const std::string& text, const std::string* separator) {
  List out;
  if (separator == nullptr) {
    std::string word;
    for (const std::string& c : characters(text)) {
      if (!is_space(c)) {
        word += c;
      } else if (!word.empty()) {
        out.emplace_back(std::move(word));
        word.clear();
      }
    }
    if (!word.empty()) out.emplace_back(std::move(word));
    return out;
  }
  std::size_t from = 0;
  for (std::size_t at = text.find(*separator); at != std::string::npos; at = text.find(*separator, from)) {
    out.emplace_back(text.substr(from, at - from));
    from = at + separator->size();
  }
  out.emplace_back(text.substr(from));
  return out;
}

}  // namespace ctk::data::chat
