#include "data/text/grapheme.h"

#include <algorithm>
#include <iterator>

#include "data/text/unicode.h"
#include "data/text/utf8.h"

namespace ctk::data {
namespace {

struct Range {
  char32_t first, last;
};

template <std::size_t n>
bool is_in(const Range (&ranges)[n], char32_t code) {
  const auto at = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                   [](char32_t c, const Range& range) { return c < range.first; });
  return at != std::begin(ranges) && code <= std::prev(at)->last;
}

// What joins the character behind it.
constexpr Range kPrepended[] = {{0x600, 0x605},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
                                {0x8E2, 0x8E2},     {0xD4E, 0xD4E},     {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
                                {0x111C2, 0x111C3}, {0x113D1, 0x113D1}, {0x1193F, 0x1193F}, {0x11941, 0x11941},
                                {0x11A84, 0x11A89}, {0x11D46, 0x11D46}, {0x11F02, 0x11F02}};
constexpr Range kControls[] = {{0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x61C, 0x61C},
                               {0x180E, 0x180E},   {0x200B, 0x200B},   {0x200E, 0x200F},   {0x2028, 0x202E},
                               {0x2060, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0x13430, 0x1343F},
                               {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE001F}, {0xE0080, 0xE00FF},
                               {0xE01F0, 0xE0FFF}};
constexpr Range kPictures[] = {
    {0xA9, 0xA9},       {0xAE, 0xAE},       {0x203C, 0x203C},   {0x2049, 0x2049},   {0x2122, 0x2122},
    {0x2139, 0x2139},   {0x2194, 0x2199},   {0x21A9, 0x21AA},   {0x231A, 0x231B},   {0x2328, 0x2328},
    {0x2388, 0x2388},   {0x23CF, 0x23CF},   {0x23E9, 0x23F3},   {0x23F8, 0x23FA},   {0x24C2, 0x24C2},
    {0x25AA, 0x25AB},   {0x25B6, 0x25B6},   {0x25C0, 0x25C0},   {0x25FB, 0x25FE},   {0x2600, 0x2605},
    {0x2607, 0x2612},   {0x2614, 0x2685},   {0x2690, 0x2705},   {0x2708, 0x2712},   {0x2714, 0x2714},
    {0x2716, 0x2716},   {0x271D, 0x271D},   {0x2721, 0x2721},   {0x2728, 0x2728},   {0x2733, 0x2734},
    {0x2744, 0x2744},   {0x2747, 0x2747},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2763, 0x2767},   {0x2795, 0x2797},   {0x27A1, 0x27A1},   {0x27B0, 0x27B0},
    {0x27BF, 0x27BF},   {0x2934, 0x2935},   {0x2B05, 0x2B07},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},
    {0x2B55, 0x2B55},   {0x3030, 0x3030},   {0x303D, 0x303D},   {0x3297, 0x3297},   {0x3299, 0x3299},
    {0x1F000, 0x1F0FF}, {0x1F10D, 0x1F10F}, {0x1F12F, 0x1F12F}, {0x1F16C, 0x1F171}, {0x1F17E, 0x1F17F},
    {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F1AD, 0x1F1E5}, {0x1F201, 0x1F20F}, {0x1F21A, 0x1F21A},
    {0x1F22F, 0x1F22F}, {0x1F232, 0x1F23A}, {0x1F23C, 0x1F23F}, {0x1F249, 0x1F3FA}, {0x1F400, 0x1F53D},
    {0x1F546, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F774, 0x1F77F}, {0x1F7D5, 0x1F7FF}, {0x1F80C, 0x1F80F},
    {0x1F848, 0x1F84F}, {0x1F85A, 0x1F85F}, {0x1F888, 0x1F88F}, {0x1F8AE, 0x1F8FF}, {0x1F90C, 0x1F93A},
    {0x1F93C, 0x1F945}, {0x1F947, 0x1FAFF}, {0x1FC00, 0x1FFFD}};

enum class Hangul { none, l, v, t, lv, lvt };
Hangul hangul_of(char32_t c) {
  if ((c >= 0x1100 && c <= 0x115F) || (c >= 0xA960 && c <= 0xA97C)) return Hangul::l;
  if ((c >= 0x1160 && c <= 0x11A7) || (c >= 0xD7B0 && c <= 0xD7C6)) return Hangul::v;
  if ((c >= 0x11A8 && c <= 0x11FF) || (c >= 0xD7CB && c <= 0xD7FB)) return Hangul::t;
  if (c >= 0xAC00 && c <= 0xD7A3) return (c - 0xAC00) % 28 == 0 ? Hangul::lv : Hangul::lvt;
  return Hangul::none;
}
bool is_syllable(char32_t before, char32_t after) {
  const Hangul a = hangul_of(before), b = hangul_of(after);
  if (a == Hangul::l) return b == Hangul::l || b == Hangul::v || b == Hangul::lv || b == Hangul::lvt;
  if (a == Hangul::lv || a == Hangul::v) return b == Hangul::v || b == Hangul::t;
  return (a == Hangul::lvt || a == Hangul::t) && b == Hangul::t;
}

}  // namespace

std::size_t grapheme_length(std::string_view text, std::size_t at) {
  const Utf8Char first = decode_utf8(text, at);
  std::size_t length = first.length;
  if (first.code == '\r') return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
  if (first.code == kInvalidByte || is_in(kControls, first.code)) return length;
  bool is_picture = is_in(kPictures, first.code);  // and marks since
  for (char32_t before = first.code; at + length < text.size();) {
    const Utf8Char next = decode_utf8(text, at + length);
    if (next.code == kInvalidByte || is_in(kControls, next.code)) break;
    const bool joins_picture = before == 0x200D && is_picture && is_in(kPictures, next.code);
    const bool joins = is_joining(next.code);
    if (!joins && !joins_picture && !is_in(kPrepended, before) && !is_syllable(before, next.code)) break;
    is_picture = joins ? is_picture : is_in(kPictures, next.code);
    before = next.code;
    length += next.length;
  }
  return length;
}

}  // namespace ctk::data
