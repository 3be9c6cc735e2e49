#include "core/printable.h"

namespace ctk {
namespace {

// A hostile file's name may be as long as the file.
constexpr std::size_t kMostShown = 16384;

}  // namespace

// Of more than 16 kB the beginning and the length.
std::string printable(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  if (text.size() > kMostShown) {
    std::size_t end = kMostShown;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // between characters
    return printable(text.substr(0, end)) + "... (" + std::to_string(text.size()) + " bytes)";
  }
  std::string shown;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code >= 0x20 && code != 0x7f) {
      shown += letter;
    } else if (letter == '\n' || letter == '\r' || letter == '\t') {
      shown += letter == '\n' ? "\\n" : letter == '\r' ? "\\r" : "\\t";
    } else {
      shown += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
    }
  }
  return shown;
}

}  // namespace ctk
