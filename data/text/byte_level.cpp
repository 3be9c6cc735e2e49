#include "data/text/byte_level.h"

#include <array>
#include <cstdint>

#include "data/text/utf8.h"

namespace ctk::data {
namespace {

constexpr std::size_t kCharacters = 0x144;  // one past the last character used

struct Alphabet {
  std::array<std::string, 256> character;        // of a byte
  std::array<std::int16_t, kCharacters> byte{};  // of a character; -1: none
  Alphabet() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool is_printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t code = is_printable ? b : next++;
      append_utf8(character[b], code);
      byte[code] = static_cast<std::int16_t>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  for (char byte : bytes) out += alphabet().character[static_cast<std::uint8_t>(byte)];
}

std::string from_byte_level(std::string_view token) {
  std::string out;
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Char c = decode_utf8(token, at);
    if (c.code >= kCharacters || alphabet().byte[c.code] < 0) return std::string(token);
    out += static_cast<char>(alphabet().byte[c.code]);
    at += c.length;
  }
  return out;
}

}  // namespace ctk::data
