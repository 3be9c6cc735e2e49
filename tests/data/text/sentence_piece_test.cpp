#include "data/text/sentence_piece_file.h"
#include "data/text/tokenizer.h"
#include "tests/data/text/make_chars_map.h"
#include "tests/data/write_files.h"

#include <bit>
#include <cmath>

namespace ctk::data {
namespace {

using test::expect_error;
using Ids = std::vector<std::int64_t>;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string text(unsigned field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string piece(const std::string& token, float score, unsigned type = 1) {
  const std::string bytes = varint(2 << 3 | 5) + test::little_endian(std::bit_cast<std::uint32_t>(score));
  return text(1, text(1, token) + bytes + number(3, type));
}

const std::string kHead = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
const std::string kBpe = text(2, number(3, 2));

Result<std::shared_ptr<const Tokenizer>> opened(const std::string& bytes) {
  const test::TempFolder folder;
  folder.write("tokenizer.model", bytes);
  return open_tokenizer(folder.path());
}
Ids encoded(const std::string& bytes, std::string_view in, const EncodeOptions& options = {}) {
  const auto tokenizer = opened(bytes);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? *(*tokenizer)->encode(in, options) : Ids{-99};
}

TEST(SentencePiece, AUnigramModelNormalizesSpacesAndTakesTheBestSum) {
  const std::string model = kHead + piece("\u2581a", -1) + piece("a", -3) + piece("b", -3) + piece("\u2581", -2);
  EXPECT_EQ(encoded(model, "  a   b "), (Ids{3, 6, 5}));  // "_a_b"
  EXPECT_EQ(encoded(model, "   "), Ids{});
  EXPECT_EQ(encoded(model, "axy"), (Ids{3, 0}));
  EXPECT_EQ(encoded(model, "a<s>a"), (Ids{3, 1, 3}));
  EXPECT_EQ(encoded(model, "a<s>a", {.find_special_tokens = false}), (Ids{3, 0, 4}));
  const auto tokenizer = *opened(model);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->unknown_id(), 0);
  EXPECT_EQ(tokenizer->padding_id(), std::nullopt);
  EXPECT_EQ(*tokenizer->decode(Ids{3, 6, 5}), "a b");
}

TEST(SentencePiece, SwitchesOfTheNormalizer) {
  const std::string model = kHead + piece("\u2581", -2) + piece("a", -3);
  EXPECT_EQ(encoded(model + text(3, number(3, 0) + number(4, 0)), " a  "), (Ids{3, 4, 3, 3}));
  EXPECT_EQ(encoded(model + text(3, number(3, 0)), " a  "), (Ids{4}));
  EXPECT_EQ(encoded(model + text(2, number(24, 1)), "a"), (Ids{4, 3}));  // the space goes behind
  EXPECT_EQ(encoded(model + text(3, text(2, test::chars_map_bytes({{"b", "a"}, {"bb", " "}}))), "bbba"),
            (Ids{3, 4, 4}));  // the longest rule first: " a" and "a"; the space in front goes
}

TEST(SentencePiece, BpeJoinsByScoreKeepsUserPiecesAndTakesUnusedOnesApart) {
  const std::string model = kHead + kBpe + piece("\u2581", -9) + piece("a", -9) + piece("b", -9) + piece("ab", -1) +
                            piece("bb", 0, 4) + piece("ba", -2, 5) + text(3, number(3, 0));
  EXPECT_EQ(encoded(model, "ab"), (Ids{6}));
  EXPECT_EQ(encoded(model, "abb"), (Ids{4, 7}));     // "bb" is cut out before anything is joined
  EXPECT_EQ(encoded(model, "baa"), (Ids{5, 4, 4}));  // "ba" is joined, and taken apart
  EXPECT_EQ(encoded(model, "xya"), (Ids{0, 4}));
}

TEST(SentencePiece, BytesThatAreNoUtf8BecomeTheReplacementCharacter) {
  EXPECT_EQ(encoded(kHead + piece("\ufffd", -1) + piece("\u2581", -1), "\xff\xfe"), (Ids{4, 3, 3}));
}

TEST(SentencePiece, TheConfigurationBesideItAddsTokens) {
  const test::TempFolder folder;
  folder.write("tokenizer.model", kHead + piece("\u2581", -1) + piece("a", -1));
  folder.write("tokenizer_config.json", R"({"add_bos_token": true, "eos_token": "<e>", "added_tokens_decoder": {
      "1": {"content": "<s>", "special": true}, "5": {"content": "<e>", "special": true}}})");
  const auto tokenizer = open_tokenizer(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*(*tokenizer)->encode("a<e>", {.add_special_tokens = true}), (Ids{1, 3, 4, 5}));
  EXPECT_EQ((*tokenizer)->eos_id(), 5);
  EXPECT_EQ((*tokenizer)->bos_id(), 1);
}

TEST(SentencePiece, ATextWithoutSpacesTakesNoQuadraticTime) {
  const std::string pieces = kHead + piece("a", -2) + piece("aa", -1) + text(3, number(3, 0));
  EXPECT_EQ(encoded(pieces, std::string(10'000'000, 'a')).size(), 5'000'000u);
  EXPECT_EQ(encoded(pieces + kBpe, std::string(1'000'000, 'a')).size(), 500'000u);
}

TEST(SentencePieceErrors, OneForEachDamage) {
  const auto expect = [](const std::string& bytes, std::initializer_list<std::string_view> words) {
    expect_error(opened(bytes), ErrorCode::input, words);
  };
  expect("", {"tokenizer.model: pieces: expected at least one, found none"});
  expect(kHead.substr(0, kHead.size() - 3),
         {"tokenizer.model: byte 30: expected a value inside the message", "found one of"});
  expect("\x0a" + std::string(9, '\xff') + "\x02", {"byte 1: expected a varint below 2^64"});
  expect("\x0a" + std::string(10, '\xff') + "\x01", {"byte 1: expected a varint", "of at most 10 bytes"});
  expect("\x0a\x80", {"byte 1: expected a varint, found the end"});
  expect("\x0a" + std::string(9, '\xff') + "\x01", {"of which 0 bytes are left, found one of 18446744073709551615"});
  expect(std::string("\x0b", 1), {"byte 0: expected a wire type 0, 1, 2 or 5, found 3"});
  expect(std::string("\x02\x01x", 3), {"byte 0: expected a field number of 1 to 2^29 - 1, found 0"});
  expect(number(1, 5), {"byte 0: pieces: expected bytes with their length, found a varint"});
  expect(text(1, text(1, "a") + number(2, 1)), {"byte 5: pieces.score: expected 4 bytes, found a varint"});
  expect(text(1, text(1, "a") + number(3, 9)), {"byte 5: pieces.type: expected 1 to 6, found 9"});
  expect(text(1, number(3, 1)), {"pieces[0].piece: expected text, found none"});
  expect(kHead + text(2, number(3, 4)), {"trainer_spec.model_type: expected 1 (UNIGRAM) or 2 (BPE), found 4 (CHAR)"});
  expect(kHead + piece("a", NAN), {"pieces[3]: expected a finite score of token \"a\", found nan"});
  expect(kHead + kBpe + piece("a", INFINITY), {"pieces[3]: expected a finite score of token \"a\", found inf"});
  expect(kHead + piece("a", 0) + piece("a", -1), {"pieces: token \"a\": expected one id, found 3 and 4"});
  expect(piece("a", 0), {"pieces: expected one piece of type UNKNOWN, found none"});
  expect(kHead + piece("<u>", 0, 2), {"pieces[3]: expected one piece of type UNKNOWN, found \"<u>\" after pieces[0]"});
  expect(kHead + piece("<0x41>", 0, 6), {"pieces[3]: expected no piece of type BYTE", "byte_fallback is false"});
  expect(kHead + text(2, number(35, 1)) + piece("<0x41>", 0, 6), {"expected 256 pieces of type BYTE", "found 1"});
  expect(kHead + text(2, number(35, 1)) + piece("A", 0, 6), {"pieces[3]: expected a piece of type BYTE", "\"A\""});
  expect(kHead + piece(std::string(5000, 'a'), 0), {"pieces[3]: expected a token of at most 4096 bytes"});
  expect(kHead + text(3, text(2, "xxxxxxx")),
         {"normalizer_spec.precompiled_charsmap: expected a trie of 4 to 3 bytes"});
  expect(kHead + text(5, text(2, "x")), {"denormalizer_spec.precompiled_charsmap: expected none, found 1 bytes"});
}

TEST(SentencePieceErrors, EveryCutEndsInOneErrorOrAShorterVocabulary) {
  const std::string whole = kHead + piece("a", -1) + text(2, number(3, 1)) + text(3, number(3, 0));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto tokenizer = opened(whole.substr(0, size));
    EXPECT_TRUE(tokenizer || tokenizer.error().message.find('\n') == std::string::npos) << size;
  }
}

}  // namespace
}  // namespace ctk::data
