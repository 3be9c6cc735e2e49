#include "data/text/precompiled.h"

#include <memory>

#include "data/text/chars_map.h"
#include "data/text/grapheme.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr std::size_t kWholeBelow = 6;  // bytes: longer graphemes are looked up character by character

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

Result<std::string> from_base64(std::string_view text, const std::string& where) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  const auto broken = [&](const std::string& found) {
    return input_error(where + ": expected Base64, found " + found + ". Fetch the file again.");
  };
  if (text.size() % 4 != 0) return broken(std::to_string(text.size()) + " characters, no multiple of 4");
  std::size_t end = text.size();
  while (end > 0 && text[end - 1] == '=' && text.size() - end < 2) --end;
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t at = 0; at < end; ++at) {
    const int digit = base64_digit(text[at]);
    if (digit < 0)
      return broken("byte " + std::to_string(static_cast<std::uint8_t>(text[at])) + " at place " + std::to_string(at));
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

// A whole grapheme takes the rule for its shortest start, marks and all: so does the package `tokenizers`.
Status rewrite(const CharsMap& map, std::string& text) {
  std::string out;
  out.reserve(text.size());
  const std::string_view in = text;
  for (std::size_t at = 0; at < in.size();) {
    const std::size_t length = grapheme_length(in, at);
    const std::string_view grapheme = in.substr(at, length);
    at += length;
    const CharsMap::Rule whole = length < kWholeBelow ? map.shortest(grapheme) : CharsMap::Rule();
    if (whole.length != 0) {
      out += whole.text;
    } else {
      for (std::size_t i = 0; i < length;) {
        const std::string_view character = grapheme.substr(i, decode_utf8(grapheme, i).length);
        const CharsMap::Rule rule = map.shortest(character);
        out += rule.length != 0 ? rule.text : character;
        i += character.size();
      }
    }
    if (out.size() > most_normalized(in.size())) return normalized_too_long(in.size(), out.size());
  }
  text = std::move(out);
  return {};
}

}  // namespace

Status add_precompiled(const JsonNode& node, std::vector<Normalizer>& steps) {
  const JsonNode encoded = node.child("precompiled_charsmap");
  CTK_TRY(const std::string text, encoded.text());
  CTK_TRY(const std::string bytes, from_base64(text, encoded.where()));
  CTK_TRY(CharsMap read, CharsMap::read(bytes, encoded.where()));
  steps.push_back(
      [map = std::make_shared<const CharsMap>(std::move(read))](std::string& in) { return rewrite(*map, in); });
  return {};
}

}  // namespace ctk::data
