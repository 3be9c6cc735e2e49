#include <algorithm>
#include <cmath>

#include "data/text/token_model.h"
#include "data/text/tokenizer.h"
#include "tests/data/text/make_tokenizer.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::expect_error;
using Ids = std::vector<std::int64_t>;

// `vocabulary`: [token, score] pairs; `more`: further members of the model.
Result<std::shared_ptr<const Tokenizer>> parsed(const std::string& vocabulary, const std::string& more) {
  test::TokenizerJson json;
  json.model = R"({"type": "Unigram", "vocab": )" + vocabulary + more + "}";
  return parse_tokenizer(json.text(), "t.json");
}

Ids encoded(const std::string& vocabulary, std::string_view text, const std::string& more = R"(, "unk_id": 0)") {
  const auto tokenizer = parsed(vocabulary, more);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  if (!tokenizer) return {-99};
  const auto ids = (*tokenizer)->encode(text);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : Ids{-98};
}

TEST(Unigram, TakesTheHighestSumOfScoresNotTheLongestToken) {
  const std::string vocabulary =
      R"([["?", 0], ["a", -2], ["b", -2], ["ab", -3], ["bc", -1], ["c", -2], ["abc", -3.5]])";
  EXPECT_EQ(encoded(vocabulary, "ab"), (Ids{3}));      // -3 against -4
  EXPECT_EQ(encoded(vocabulary, "abc"), (Ids{1, 4}));  // a bc: -3; abc: -3.5; ab c: -5
}

TEST(Unigram, OfEqualSumsThePathFoundFirstIsTaken) {
  // a+a and aa both reach place 2 with -2; from place 0 "aa" is found first.
  EXPECT_EQ(encoded(R"([["?", 0], ["a", -1], ["aa", -2]])", "aa"), (Ids{2}));
}

TEST(Unigram, UnknownCharactersInARowAreOne) {
  const std::string vocabulary = R"([["?", 0], ["a", -1]])";
  EXPECT_EQ(encoded(vocabulary, "axy\u00e9a"), (Ids{1, 0, 1}));
  EXPECT_EQ(encoded(vocabulary, "x\xff\xfe"), (Ids{0}));
  EXPECT_EQ(encoded(vocabulary, ""), Ids{});
}

TEST(Unigram, AnUnknownCharacterCostsTenMoreThanTheWorstToken) {
  // The lowest score is -12.5: unknown + a = (-12.5 - 10) - 1, less than xa.
  EXPECT_EQ(encoded(R"([["?", 0], ["a", -1], ["xa", -12.5]])", "xa"), (Ids{2}));
  // The lowest score is -1: unknown + a = -11 - 1 = -12, unknown + unknown + "aa" = -22 - 1.
  EXPECT_EQ(encoded(R"([["?", 0], ["a", -1], ["aa", -1]])", "xaa"), (Ids{0, 2}));
}

TEST(Unigram, UnknownTextBecomesBytesWhereThereIsOneForEach) {
  const std::string vocabulary = R"([["?", 0], ["a", -1], ["<0xC3>", 0], ["<0xA9>", 0]])";
  const std::string falls_back = R"(, "unk_id": 0, "byte_fallback": true)";
  EXPECT_EQ(encoded(vocabulary, "a\u00e9", falls_back), (Ids{1, 2, 3}));
  EXPECT_EQ(encoded(vocabulary, "\u00e9x", falls_back), (Ids{0}));  // x has none: the whole run is unknown
  EXPECT_EQ(encoded(vocabulary, "a\u00e9"), (Ids{1, 0}));
}

TEST(Unigram, WithoutAnUnknownTokenACharacterThatItLacksIsAnError) {
  const auto tokenizer = parsed(R"([["a", -1]])", R"(, "unk_id": null)");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*(*tokenizer)->encode("aa"), (Ids{0, 0}));
  expect_error((*tokenizer)->encode("ab"), ErrorCode::input,
               {"t.json: model.unk_id: expected a token", "\"b\", found none", "Take a tokenizer"});
}

TEST(Unigram, ALongTextWithoutABreakTakesTimeInProportion) {
  // 10 MB. Every second place is bridged by "aa", so no place is passed by all paths but the last.
  const std::size_t count = 10'000'000;
  const Ids ids = encoded(R"([["?", 0], ["a", -2], ["aa", -3], ["aaa", -9]])", std::string(count, 'a'));
  EXPECT_EQ(ids.size(), count / 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), static_cast<std::ptrdiff_t>(count / 2));
}

TEST(Unigram, PathsAreCutWhereNoneGoesAcross) {
  // Longer than what is kept; the run of unknown characters crosses every cut and stays one.
  EXPECT_EQ(encoded(R"([["?", 0], ["a", -2]])", std::string(300'000, 'x')), (Ids{0}));
  std::string text(200'000, 'b');
  text += "ab";
  EXPECT_EQ(encoded(R"([["?", 0], ["a", -2], ["b", -2], ["ab", -3]])", text).back(), 3);
}

TEST(Unigram, AModelWithoutATypeIsKnownByItsList) {
  test::TokenizerJson json;
  json.model = R"({"unk_id": 0, "vocab": [["?", 0], ["a", -1]]})";
  const auto tokenizer = parse_tokenizer(json.text(), "t.json");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*(*tokenizer)->encode("aa"), (Ids{1, 1}));
}

TEST(UnigramErrors, OneForEachDamage) {
  const auto expect = [](const std::string& vocabulary, const std::string& more, const std::string& message) {
    expect_error(parsed(vocabulary, more), ErrorCode::input, {message.c_str()});
  };
  expect("[]", "", "t.json: model.vocab: expected an array of tokens and scores, found an array of 0");
  expect("{}", "", "t.json: model.vocab: expected an array of tokens and scores");
  expect(R"([["a"]])", "", "t.json: model.vocab[0]: expected a token and its score");
  expect(R"([["a", "b"]])", "", "t.json: model.vocab[0][1]: expected a number, found \"b\"");
  expect(R"([["a", 0], ["a", -1]])", "", "t.json: model.vocab: token \"a\": expected one id, found 0 and 1");
  expect(R"([["a", 0]])", R"(, "unk_id": 1)", "t.json: model.unk_id: expected an id of 0 to 0, found 1");
  expect(R"([["a", 0]])", R"(, "unk_id": -1)", "t.json: model.unk_id: expected an id of 0 to 0, found -1");
  expect("[[\"" + std::string(5000, 'a') + "\", 0]]", "",
         "t.json: model.vocab[0]: expected a token of at most 4096 bytes, found one of 5000");
}

TEST(UnigramErrors, AScoreThatIsNoNumberIsNamed) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.add("a", 0, "v"));
  ASSERT_TRUE(vocabulary.add("b", 1, "v"));
  UnigramOptions options;
  options.where = "t.json: model";
  expect_error(make_unigram(std::move(vocabulary), {0, NAN}, options), ErrorCode::input,
               {"t.json: model.vocab[1]: expected a finite score of token \"b\", found nan"});
}

}  // namespace
}  // namespace ctk::data
