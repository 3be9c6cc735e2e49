#include "data/text/chars_map.h"

#include "data/text/grapheme.h"
#include "data/text/tokenizer.h"
#include "tests/data/text/make_chars_map.h"
#include "tests/data/text/make_tokenizer.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::chars_map_bytes;
using test::expect_error;
using test::little_endian;
using Ids = std::vector<std::int64_t>;

TEST(CharsMap, FindsTheShortestAndTheLongestRule) {
  const auto map = CharsMap::read(chars_map_bytes({{"a", "1"}, {"abc", "xyz"}, {"b", ""}}), "m");
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->shortest("abcd").text, "1");
  EXPECT_EQ(map->shortest("abcd").length, 1u);
  EXPECT_EQ(map->longest("abcd").text, "xyz");
  EXPECT_EQ(map->longest("abcd").length, 3u);
  EXPECT_EQ(map->longest("ab").length, 1u);  // "ab" has no rule of its own
  EXPECT_EQ(map->longest("b").length, 1u);   // to be written as nothing
  EXPECT_EQ(map->longest("b").text, "");
  EXPECT_EQ(map->longest("c").length, 0u);
  EXPECT_EQ(map->longest("").length, 0u);
  EXPECT_EQ(map->longest(std::string_view("\0", 1)).length, 0u);
}

TEST(CharsMapErrors, OneForEachDamage) {
  std::string texts;
  const auto units = test::chars_map_units({{"a", "1"}}, texts);
  const auto damaged = [&](std::size_t at, std::uint32_t unit, const std::string& with) {
    auto changed = units;
    changed[at] = unit;
    return CharsMap::read(chars_map_bytes(changed, with), "m");
  };
  // The root stands at 0 with its children at 256 and on; "a" (97) is the unit 256 + 97, its text's place at 512.
  ASSERT_EQ(units.size(), 768u);
  ASSERT_TRUE(damaged(0, units[0], texts));
  expect_error(damaged(0, 0x7FFFFE00u, texts), ErrorCode::input,
               {"m: unit 0: expected an offset to one of 768 units, found 536870656"});
  expect_error(damaged(353, units[353] | 1u << 30, texts), ErrorCode::input, {"m: unit 353: expected an offset"});
  expect_error(damaged(512, 0x80000002u, texts), ErrorCode::input, {"unit 353", "a text inside 2 bytes", "place 2"});
  expect_error(damaged(512, 0xFFFFFFFFu, texts), ErrorCode::input, {"a text inside 2 bytes", "place 2147483647"});
  expect_error(damaged(0, units[0], "1"), ErrorCode::input, {"a text inside 1 bytes that a zero byte ends"});
  expect_error(CharsMap::read("", "m"), ErrorCode::input, {"m: expected a map of more than 4 bytes, found 0"});
  expect_error(CharsMap::read(little_endian(6) + std::string(100, 'x'), "m"), ErrorCode::input,
               {"a multiple of 4, found 6"});
  expect_error(CharsMap::read(little_endian(0) + "xxxx", "m"), ErrorCode::input, {"found 0"});
  expect_error(CharsMap::read(little_endian(0xFFFFFFFCu) + "xxxx", "m"), ErrorCode::input,
               {"a trie of 4 to 4 bytes", "found 4294967292"});
}

TEST(CharsMap, ATrieThatRunsInCirclesTakesNoQuadraticTime) {
  // "a" leads from its own unit back to itself: place 353 with an offset of 353 ^ 256, so that the next is 256 ^ 97.
  std::string texts;
  auto units = test::chars_map_units({{"a", "1"}}, texts);
  units[353] = (353u ^ 256u) << 10 | 97;
  const auto map = CharsMap::read(chars_map_bytes(units, texts), "m");
  ASSERT_TRUE(map) << map.error().message;
  const std::string text(200000, 'a');
  std::size_t rules = 0;
  for (std::size_t at = 0; at < text.size(); ++at) rules += map->longest(std::string_view(text).substr(at)).length;
  EXPECT_EQ(rules, 0u);
}

TEST(Grapheme, JoinsMarksAndLineEnds) {
  EXPECT_EQ(grapheme_length("ab", 0), 1u);
  EXPECT_EQ(grapheme_length("e\u0301\u0302x", 0), 5u);
  EXPECT_EQ(grapheme_length("\r\n", 0), 2u);
  EXPECT_EQ(grapheme_length("\n\u0301", 0), 1u);             // a control stands alone
  EXPECT_EQ(grapheme_length("\u0600a", 0), 3u);              // an Arabic number sign joins what follows
  EXPECT_EQ(grapheme_length("\u1100\u1161\u11a8x", 0), 9u);  // a Hangul syllable of three parts
  EXPECT_EQ(grapheme_length("\uac01\u1161", 0), 3u);         // which is full: a vowel starts another
  EXPECT_EQ(grapheme_length("\u00a9\u200d\u2122", 0), 8u);   // two pictures and a joiner
  EXPECT_EQ(grapheme_length("a\u200d\u2122", 0), 4u);
  EXPECT_EQ(grapheme_length("\xff\u0301", 0), 1u);
}

std::shared_ptr<const Tokenizer> mapped(const std::string& base64) {
  test::TokenizerJson json;
  json.model = R"({"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "X": 1, "XX": 2, "Xb": 3, "X\u0301": 4}})";
  json.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": ")" + base64 + "\"}";
  auto tokenizer = parse_tokenizer(json.text(), "t.json");
  return tokenizer ? *tokenizer : nullptr;
}

TEST(Precompiled, RewritesGraphemesBelowSixBytesByTheirShortestStart) {
  const auto tokenizer = mapped(test::to_base64(chars_map_bytes({{"a", "X"}, {"aa", "?"}})));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*tokenizer->encode("a"), Ids{1});
  EXPECT_EQ(*tokenizer->encode("aa"), Ids{2});                   // two graphemes
  EXPECT_EQ(*tokenizer->encode("ab"), Ids{3});                   // no rule: stays
  EXPECT_EQ(*tokenizer->encode("a\u0301"), Ids{1});              // 3 bytes: "a" decides, the accent goes
  EXPECT_EQ(*tokenizer->encode("a\u0301\u0301\u0301"), Ids{0});  // 7 bytes: each by itself, "X" and three accents
}

TEST(PrecompiledErrors, NameTheComponent) {
  const auto error_of = [](const std::string& value) {
    test::TokenizerJson json = test::byte_level_abc();
    json.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": )" + value + "}";
    return parse_tokenizer(json.text(), "t.json");
  };
  const std::string place = "t.json: normalizer.precompiled_charsmap: expected ";
  expect_error(error_of("null"), ErrorCode::input, {place + "a string"});
  expect_error(error_of("\"AAAAA\""), ErrorCode::input, {place + "Base64, found 5 characters"});
  expect_error(error_of("\"AA*A\""), ErrorCode::input, {place + "Base64, found byte 42 at place 2"});
  expect_error(error_of("\"A===\""), ErrorCode::input, {place + "Base64, found byte 61 at place 1"});
  expect_error(error_of("\"AAAA\""), ErrorCode::input, {place + "a map of more than 4 bytes, found 3"});
}

TEST(PrecompiledErrors, ATextThatGrowsBeyondAllMeasureIsStopped) {
  const auto tokenizer = mapped(test::to_base64(chars_map_bytes({{"a", std::string(1 << 20, 'x')}})));
  ASSERT_NE(tokenizer, nullptr);
  expect_error(tokenizer->encode(std::string(100, 'a')), ErrorCode::input,
               {"normalizer: expected a text of 100 bytes"});
}

}  // namespace
}  // namespace ctk::data
