#include "core/printable.h"

namespace ctk {

std::string printable(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
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
