#include <cmath>

#include "data/text/tokenizer.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::expect_error;
using Ids = std::vector<std::int64_t>;

TokenizerParts gpt2_parts() {
  TokenizerParts parts;
  parts.where = "m.gguf";
  parts.kind = "gpt2";
  parts.pre = "smollm";
  parts.tokens = {"<s>", "1", "2", "12", "a", "b", "ab", "\u0120", "\u0120a"};
  parts.types = {3, 1, 1, 1, 1, 1, 1, 1, 1};
  parts.merges = {"1 2", "a b", "\u0120 a"};
  parts.bos = 0;
  return parts;
}

TokenizerParts llama_parts() {
  TokenizerParts parts;
  parts.where = "m.gguf";
  parts.kind = "llama";
  parts.tokens = {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u2581", "a", "b", "ab", "\u2581a", "bb", "abb"};
  parts.scores = {0, 0, 0, 0, 0, -9, -9, -9, -2, -3, -1, -4};
  parts.types = {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 1};
  parts.bos = 1;
  parts.eos = 2;
  return parts;
}

Ids encoded(const TokenizerParts& parts, std::string_view text, const EncodeOptions& options = {}) {
  const auto tokenizer = make_tokenizer(parts);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  if (!tokenizer) return {-99};
  return *(*tokenizer)->encode(text, options);
}

TEST(GgufTokenizer, CutsAsThePreTokenizerOfItsNameSays) {
  TokenizerParts parts = gpt2_parts();
  EXPECT_EQ(encoded(parts, "12 ab"), (Ids{1, 2, 7, 6}));  // smollm: digits one by one
  parts.pre = "gpt-2";
  EXPECT_EQ(encoded(parts, "12 ab"), (Ids{3, 7, 6}));
  parts.pre = "";  // default
  EXPECT_EQ(encoded(parts, "12"), (Ids{3}));
}

TEST(GgufTokenizer, LlamaBpeTakesAPieceThatIsATokenWithoutMerges) {
  TokenizerParts parts = gpt2_parts();
  parts.merges = {"1 2"};
  EXPECT_EQ(encoded(parts, "ab"), (Ids{4, 5}));
  parts.pre = "llama-bpe";
  EXPECT_EQ(encoded(parts, "ab"), (Ids{6}));
}

TEST(GgufTokenizer, JoinsTheHighestScoreFirst) {
  // " abb" -> "_abb": "bb" (-1) goes before "ab" (-2); then "abb" (-4) is behind "_a" (-3): "_a", "bb".
  EXPECT_EQ(encoded(llama_parts(), "abb"), (Ids{9, 10}));
  TokenizerParts parts = llama_parts();
  parts.adds_space = false;
  EXPECT_EQ(encoded(parts, "abb"), (Ids{11}));
}

TEST(GgufTokenizer, CodesBytesThenUnknown) {
  EXPECT_EQ(encoded(llama_parts(), "\u00e9"), (Ids{5, 3, 4}));
  EXPECT_EQ(encoded(llama_parts(), "x"), (Ids{5, 0}));
}

TEST(GgufTokenizer, PutsASpaceBehindEachControlToken) {
  EXPECT_EQ(encoded(llama_parts(), "<s>a</s>a"), (Ids{1, 9, 2, 9}));
}

TEST(GgufTokenizer, AddsBosAndEosWhereTheFileSaysSo) {
  TokenizerParts parts = llama_parts();
  parts.adds_bos = parts.adds_eos = true;
  EXPECT_EQ(encoded(parts, "a", {.add_special_tokens = true}), (Ids{1, 9, 2}));
  EXPECT_EQ(encoded(parts, "a"), (Ids{9}));
}

TEST(GgufTokenizer, DecodesWhatItEncoded) {
  const auto tokenizer = make_tokenizer(llama_parts());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(*(*tokenizer)->decode(Ids{1, 9, 10, 3, 4}, true), "abb\u00e9");
  EXPECT_EQ(*(*make_tokenizer(gpt2_parts()))->decode(Ids{1, 2, 8, 5}), "12 ab");
}

TEST(GgufTokenizer, RefusesPartsThatDoNotFit) {
  const auto refused = [](TokenizerParts parts, const auto& change, std::initializer_list<std::string_view> words) {
    change(parts);
    expect_error(make_tokenizer(parts), ErrorCode::input, words);
  };
  refused(gpt2_parts(), [](auto& p) { p.kind = "t5"; }, {"m.gguf: tokenizer: expected", "gpt2 or llama", "\"t5\""});
  refused(gpt2_parts(), [](auto& p) { p.pre = "tekken"; }, {"m.gguf: pre-tokenizer: expected", "qwen2", "\"tekken\""});
  refused(gpt2_parts(), [](auto& p) { p.types.pop_back(); }, {"token types: expected one for each of 9", "found 8"});
  refused(gpt2_parts(), [](auto& p) { p.merges[1] = "ab"; }, {"merges[1]: expected \"left right\"", "\"ab\""});
  refused(gpt2_parts(), [](auto& p) { p.merges[1] = "b 1"; }, {"merges[1]: expected tokens", "\"b1\""});
  refused(gpt2_parts(), [](auto& p) { p.bos = 9; }, {"BOS token: expected an id of 0 to 8", "found 9"});
  refused(gpt2_parts(), [](auto& p) { p.tokens[2] = "1"; }, {"tokens: token \"1\": expected one id, found 1 and 2"});
  refused(gpt2_parts(), [](auto& p) { p.tokens.clear(); }, {"tokens: expected at least one"});
  refused(llama_parts(), [](auto& p) { p.scores.pop_back(); }, {"scores: expected one for each of 12", "found 11"});
  refused(llama_parts(), [](auto& p) { p.scores[3] = NAN; }, {"scores: expected numbers, found NaN for token 3"});
  refused(llama_parts(),
          [](auto& p) {
            p.adds_bos = true;
            p.bos.reset();
          },
          {"found none for BOS"});
}

}  // namespace
}  // namespace ctk::data
