#include "data/text/tokenizer.h"

#include <filesystem>

#include "core/file.h"
#include "tests/data/text/make_tokenizer.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::byte_level_abc;
using test::expect_error;
using test::TokenizerJson;
using Ids = std::vector<std::int64_t>;

std::shared_ptr<const Tokenizer> made(const TokenizerJson& json) {
  auto tokenizer = parse_tokenizer(json.text(), "t.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *tokenizer : nullptr;
}

Ids encoded(const TokenizerJson& json, std::string_view text, const EncodeOptions& options = {}) {
  const auto tokenizer = made(json);
  if (tokenizer == nullptr) return {-99};
  auto ids = tokenizer->encode(text, options);
  EXPECT_TRUE(ids) << ids.error().message;
  return ids ? *ids : Ids{-98};
}

TEST(Tokenizer, JoinsTheEarliestMergeFirst) {
  EXPECT_EQ(encoded(byte_level_abc(), "abc"), (Ids{7}));
  // " ab": "a b" is the first merge, so " a" has no "a" left.
  EXPECT_EQ(encoded(byte_level_abc(), " ab"), (Ids{4, 5}));
  EXPECT_EQ(encoded(byte_level_abc(), " ac"), (Ids{6, 3}));
}

TEST(Tokenizer, JoinsTheLeftmostOfEqualPairs) {
  TokenizerJson json;
  json.model = R"({"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": [["a", "a"]]})";
  EXPECT_EQ(encoded(json, "aaa"), (Ids{1, 0}));
}

TEST(Tokenizer, GivesNoIdsForNoText) {
  EXPECT_EQ(encoded(byte_level_abc(), ""), Ids{});
}

TEST(Tokenizer, FindsAddedTokensBeforeItCutsTheText) {
  EXPECT_EQ(encoded(byte_level_abc(), "ab<e>c"), (Ids{5, 0, 3}));
  // As text its characters are not in the vocabulary, and vanish.
  EXPECT_EQ(encoded(byte_level_abc(), "ab<e>c", {.find_special_tokens = false}), (Ids{5, 3}));
}

TEST(Tokenizer, AddedTokensTakeSpacesAlongAndStandAloneWhereTheySaySo) {
  TokenizerJson json = byte_level_abc();
  json.added_tokens = R"([{"id": 8, "content": "<m>", "lstrip": true, "rstrip": true, "normalized": false},
                          {"id": 9, "content": "ca", "single_word": true, "normalized": false}])";
  EXPECT_EQ(encoded(json, "a  <m> \n b"), (Ids{1, 8, 2}));
  EXPECT_EQ(encoded(json, "ca"), (Ids{9}));
  EXPECT_EQ(encoded(json, "cab"), (Ids{3, 5}));  // inside a word it is none: "c", "ab"
}

TEST(Tokenizer, OfTwoAddedTokensThatStartAlikeTheLongerIsTaken) {
  TokenizerJson json = byte_level_abc();
  json.added_tokens = R"([{"id": 8, "content": "<m"}, {"id": 9, "content": "<m>"}])";
  EXPECT_EQ(encoded(json, "<m><m"), (Ids{9, 8}));
}

TEST(Tokenizer, ByteLevelKeepsBytesThatAreNoUtf8) {
  // 0xFF is U+00FF of the byte alphabet, 0xC3 alone U+00C3.
  TokenizerJson json = byte_level_abc();
  json.model = R"({"type": "BPE", "vocab": {"a": 0, "\u00ff": 1, "\u00c3": 2}, "merges": []})";
  json.added_tokens = "";
  EXPECT_EQ(encoded(json,
                    "a\xff\xff"
                    "a\xc3"),
            (Ids{0, 1, 1, 0, 2}));
  const auto tokenizer = made(json);
  EXPECT_EQ(*tokenizer->decode(Ids{0, 1, 2}), "a\xff\xc3");
}

TEST(Tokenizer, DecodesWhatItEncoded) {
  const auto tokenizer = made(byte_level_abc());
  EXPECT_EQ(*tokenizer->decode(Ids{0, 7, 6, 3}), "<e>abc ac");
  EXPECT_EQ(*tokenizer->decode(Ids{0, 7, 6, 3}, true), "abc ac");
  EXPECT_EQ(*tokenizer->decode(Ids{}), "");
}

TEST(Tokenizer, AnswersWhatItsVocabularyHolds) {
  const auto tokenizer = made(byte_level_abc());
  EXPECT_EQ(tokenizer->vocabulary_size(), 8);
  EXPECT_EQ(tokenizer->id_of("abc"), 7);
  EXPECT_EQ(tokenizer->id_of("x"), std::nullopt);
  EXPECT_EQ(tokenizer->token_of(8), std::nullopt);
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
}

TEST(Tokenizer, SentencePieceBpeFallsBackToBytesThenToUnknown) {
  TokenizerJson json;
  json.model = R"({"type": "BPE", "unk_token": "<u>", "fuse_unk": true, "byte_fallback": true,
                   "vocab": {"<u>": 0, "\u2581": 1, "a": 2, "\u2581a": 3, "<0xC3>": 4, "<0xA9>": 5},
                   "merges": [["\u2581", "a"]]})";
  json.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})";
  json.decoder =
      R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                     {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1}]})";
  EXPECT_EQ(encoded(json, "a a"), (Ids{3, 3}));
  EXPECT_EQ(encoded(json, "\u00e9"), (Ids{1, 4, 5}));  // its two bytes
  EXPECT_EQ(encoded(json, "xya"), (Ids{1, 0, 2}));     // x and y are one unknown
  EXPECT_EQ(*made(json)->decode(Ids{3, 3, 4, 5}), "a a\u00e9");
}

TEST(Tokenizer, WordPieceTakesTheLongestStartAndMarksTheRest) {
  TokenizerJson json;
  json.model = R"({"type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 5,
                   "vocab": {"[U]": 0, "un": 1, "u": 2, "##aff": 3, "##a": 4, "##f": 5, ",": 6, "[C]": 7, "[S]": 8}})";
  json.normalizer = R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": null, "lowercase": true})";
  json.pre_tokenizer = R"({"type": "BertPreTokenizer"})";
  json.post_processor = R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[C]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[S]", "type_id": 0}}],
      "special_tokens": {"[C]": {"id": "[C]", "ids": [7], "tokens": ["[C]"]},
                         "[S]": {"id": "[S]", "ids": [8], "tokens": ["[S]"]}}})";
  json.decoder = R"({"type": "WordPiece", "prefix": "##", "cleanup": true})";
  EXPECT_EQ(encoded(json, "UNaff, u"), (Ids{1, 3, 6, 2}));
  EXPECT_EQ(encoded(json, "\u00danaf"), (Ids{1, 4, 5}));  // the accent goes
  EXPECT_EQ(encoded(json, "unx"), (Ids{0}));              // one piece unknown: the whole word is
  EXPECT_EQ(encoded(json, "unafff"), (Ids{0}));           // longer than 5 characters
  EXPECT_EQ(encoded(json, "u", {.add_special_tokens = true}), (Ids{7, 2, 8}));
  EXPECT_EQ(encoded(json, "", {.add_special_tokens = true}), (Ids{7, 8}));
  EXPECT_EQ(*made(json)->decode(Ids{1, 3, 6, 2}), "unaff, u");
}

TEST(Tokenizer, ALongWordTakesNoQuadraticTime) {
  TokenizerJson json;
  json.model = R"({"type": "BPE", "vocab": {"a": 0, "aa": 1, "aaaa": 2}, "merges": ["a a", "aa aa"]})";
  EXPECT_EQ(encoded(json, std::string(1 << 20, 'a')), Ids(1 << 18, 2));
}

TEST(Tokenizer, ReadsBosAndEosFromTheFilesBeside) {
  const test::TempFolder folder;
  folder.write("tokenizer.json", byte_level_abc().text());
  folder.write("config.json", R"({"bos_token_id": 1, "eos_token_id": [2, 3]})");
  folder.write("tokenizer_config.json", R"({"bos_token": {"content": "<e>"}})");
  const auto tokenizer = open_tokenizer(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->bos_id(), 0);  // tokenizer_config.json goes first
  EXPECT_EQ((*tokenizer)->eos_id(), 2);
  EXPECT_EQ((*open_tokenizer(folder.path("tokenizer.json")))->bos_id(), 0);
}

TEST(TokenizerErrors, NameFileAndPlace) {
  const test::TempFolder folder;
  expect_error(open_tokenizer(folder.path()), ErrorCode::input, {"tokenizer.json", "expected a folder"});
  expect_error(open_tokenizer(folder.path("none.json")), ErrorCode::input, {"none.json"});
  expect_error(parse_tokenizer("", "t.json"), ErrorCode::input, {"t.json: expected JSON", "an empty file"});
  expect_error(parse_tokenizer("{\"model\": {", "t.json"), ErrorCode::input, {"t.json: expected JSON", "line 1"});
  expect_error(parse_tokenizer("[1]", "t.json"), ErrorCode::input, {"t.json: expected an object", "an array of 1"});
  expect_error(parse_tokenizer("{}", "t.json"), ErrorCode::input, {"t.json: model: expected an object", "nothing"});
}

struct Damage {
  const char* name;
  TokenizerJson json;
  std::vector<std::string> words;
};

TEST(TokenizerErrors, OneForEachDamage) {
  const auto with = [](std::string TokenizerJson::*section, const std::string& text) {
    TokenizerJson json = byte_level_abc();
    json.*section = text;
    return json;
  };
  const auto bpe = [&](const std::string& vocabulary, const std::string& merges, const std::string& more = "") {
    TokenizerJson json;
    json.model = "{\"type\": \"BPE\", \"vocab\": " + vocabulary + ", \"merges\": " + merges + more + "}";
    return json;
  };
  std::string nested = R"({"type": "Digits"})";
  for (int i = 0; i < 40; ++i) nested = R"({"type": "Sequence", "pretokenizers": [)" + nested + "]}";
  const Damage damages[] = {
      {"pre-tokenizer",
       with(&TokenizerJson::pre_tokenizer, R"({"type": "UnicodeScripts"})"),
       {"t.json: pre_tokenizer: expected", "ByteLevel", "found \"UnicodeScripts\""}},
      {"normalizer",
       with(&TokenizerJson::normalizer, R"({"type": "Nmt"})"),
       {"t.json: normalizer: expected", "\"Nmt\""}},
      {"decoder", with(&TokenizerJson::decoder, R"({"type": "CTC"})"), {"t.json: decoder: expected", "\"CTC\""}},
      {"post-processor",
       with(&TokenizerJson::post_processor, R"({"type": "X"})"),
       {"t.json: post_processor: expected"}},
      {"model", with(&TokenizerJson::model, R"({"type": "X"})"), {"t.json: model: expected", "BPE", "\"X\""}},
      {"pattern",
       with(&TokenizerJson::pre_tokenizer, R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "(a"}})"),
       {"pre_tokenizer.pattern.Regex: expected a regular expression", "\"(a\""}},
      {"nested class",
       with(&TokenizerJson::pre_tokenizer,
            R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "[a[b]]"}})"),
       {"without a class inside a class", "\"[a[b]]\""}},
      {"behavior",
       with(&TokenizerJson::pre_tokenizer, R"({"type": "Split", "behavior": "Cut", "pattern": {"String": "a"}})"),
       {"pre_tokenizer.behavior: expected Removed", "\"Cut\""}},
      {"nesting", with(&TokenizerJson::pre_tokenizer, nested), {"nested at most 16 deep"}},
      {"same id twice", bpe(R"({"a": 0, "b": 0})", "[]"), {"model.vocab: expected each id once", "\"a\"", "\"b\""}},
      {"negative id", bpe(R"({"a": -1})", "[]"), {"model.vocab: token \"a\": expected an id of 0 to", "found -1"}},
      {"huge id", bpe(R"({"a": 4294967296})", "[]"), {"expected an id of 0 to", "found 4294967296"}},
      {"id beyond 64 bits", bpe(R"({"a": 99999999999999999999})", "[]"), {"model.vocab[\"a\"]: expected an integer"}},
      {"id of text", bpe(R"({"a": "0"})", "[]"), {"model.vocab[\"a\"]: expected an integer", "\"0\""}},
      {"empty vocabulary", bpe("{}", "[]"), {"model.vocab: expected at least one token"}},
      {"merge without token", bpe(R"({"a": 0})", R"(["a a"])"), {"model.merges[0]: expected tokens", "\"aa\""}},
      {"merge of three", bpe(R"({"a": 0})", R"(["a a a"])"), {"model.merges[0]: expected \"left right\""}},
      {"merges of no type", bpe(R"({"a": 0})", "7"), {"model.merges: expected an array"}},
      {"dropout", bpe(R"({"a": 0})", "[]", R"(, "dropout": 0.1)"), {"model.dropout: expected null or 0", "0.1"}},
      {"unknown token", bpe(R"({"a": 0})", "[]", R"(, "unk_token": "<u>")"), {"model.unk_token: expected", "<u>"}},
      {"added id",
       with(&TokenizerJson::added_tokens, R"([{"id": 3, "content": "abc"}])"),
       {"added_tokens[0]: token \"abc\": expected id 7", "found 3"}},
      {"added id taken",
       with(&TokenizerJson::added_tokens, R"([{"id": 3, "content": "<x>"}])"),
       {"added_tokens[0]: expected each id once, found 3", "\"c\""}},
      {"template",
       with(&TokenizerJson::post_processor, R"({"type": "BertProcessing", "cls": ["x", 99], "sep": ["y", 0]})"),
       {"post_processor: expected ids of tokens, found 99"}},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    const auto tokenizer = parse_tokenizer(damage.json.text(), "t.json");
    ASSERT_FALSE(tokenizer);
    EXPECT_EQ(tokenizer.error().code, ErrorCode::input);
    for (const std::string& word : damage.words)
      EXPECT_NE(tokenizer.error().message.find(word), std::string::npos)
          << word << " in: " << tokenizer.error().message;
    EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos);
  }
}

TEST(TokenizerErrors, ANormalizerThatDoublesATextAgainAndAgainIsStopped) {
  TokenizerJson json = byte_level_abc();
  std::string steps;
  for (int i = 0; i < 64; ++i)
    steps += std::string(i == 0 ? "" : ", ") + R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  json.normalizer = R"({"type": "Sequence", "normalizers": [)" + steps + "]}";
  expect_error(made(json)->encode("abc"), ErrorCode::input, {"normalizer", "3 bytes", "at most"});
}

TEST(TokenizerErrors, DecodeNamesTheIdThatIsNone) {
  expect_error(made(byte_level_abc())->decode(Ids{1, 8}), ErrorCode::input,
               {"t.json: expected ids of tokens, 0 to 7", "found 8 at place 1"});
  expect_error(made(byte_level_abc())->decode(Ids{-1}), ErrorCode::input, {"found -1"});
}

TEST(TokenizerReal, CodesTheWholeTestTextOfSmolLm) {
  CTK_REAL_DATA(model, "smollm2/tokenizer.json");
  CTK_REAL_DATA(file, "text/wiki.test.raw");
  const auto tokenizer = open_tokenizer(model);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = *read_text(file);
  const auto ids = (*tokenizer)->encode(text);
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->size(), 304830u);  // as DATA.md has it from llama.cpp
  EXPECT_EQ(*(*tokenizer)->decode(*ids), text);
}

}  // namespace
}  // namespace ctk::data
