#include "core/printable.h"

#include <gtest/gtest.h>

namespace ctk {
namespace {

TEST(Printable, EscapesWhatBreaksALineOrDrivesATerminal) {
  EXPECT_EQ(printable("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(printable("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, ShowsTheBeginningAndLengthOfAFileSizedName) {
  const std::string shown = printable("n" + std::string(50'000'000, 'a') + "\n");
  EXPECT_LT(shown.size(), 17'000u);
  EXPECT_TRUE(shown.starts_with("na"));
  EXPECT_TRUE(shown.ends_with("... (50000002 bytes)"));
}

TEST(Printable, LeavesOrdinaryNamesAlone) {
  EXPECT_EQ(printable("layer3/conv.1 'ü' \"q\" C:\\n"), "layer3/conv.1 'ü' \"q\" C:\\n");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace ctk
