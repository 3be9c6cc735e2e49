// Names from files as a message can show them on its one line.
#pragma once

#include <string>
#include <string_view>

namespace ctk {

// `text` with its control characters escaped: \n, \r, \t, and \x1b style for the others. The rest, UTF-8 and
// backslashes included, stays: a name without control characters is shown as patterns must spell it.
std::string printable(std::string_view text);

}  // namespace ctk
