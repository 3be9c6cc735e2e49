#include "data/text/token_source.h"

#include "core/hash.h"
#include "data/source.h"
#include "data/splits.h"
#include "tests/data/text/make_tokenizer.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::expect_error;
using test::TempFolder;
using Ids = std::vector<std::int64_t>;

// Each character is a token: "<s>" 0, a 1, b 2, c 3, newline 4, carriage return 5.
std::string write_tokenizer(const TempFolder& folder, bool names_bos = true) {
  test::TokenizerJson json;
  json.model = R"({"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "c": 3, "\n": 4, "\r": 5}, "merges": []})";
  folder.write("tokenizer.json", json.text());
  if (names_bos) folder.write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  return folder.path("tokenizer.json");
}

TextSpec spec_of(const TempFolder& folder, std::int64_t context, bool lines = false, bool bos = false) {
  TextSpec spec;
  spec.context = context;
  spec.lines = lines;
  spec.bos = bos;
  spec.tokenizer_path = folder.path("tokenizer.json");
  return spec;
}

Ids ids_of(const TokenSource& source, std::size_t index) {
  const auto ids = source.ids(index);
  return Ids(ids.begin(), ids.end());
}

TEST(TokenSource, CutsOneStreamIntoWindowsAndDropsTheRest) {
  const TempFolder folder;
  write_tokenizer(folder);
  const auto source = TokenSource::open(folder.write("t.txt", "abc\r\nabca"), spec_of(folder, 4));
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->count(), 2u);
  EXPECT_EQ(ids_of(**source, 0), (Ids{1, 2, 3, 5}));  // "\r\n" is two tokens, in two windows
  EXPECT_EQ(ids_of(**source, 1), (Ids{4, 1, 2, 3}));
  EXPECT_EQ((*source)->total_tokens(), 9u);
  EXPECT_EQ((*source)->where(1), "t.txt tokens 4 to 7");
}

TEST(TokenSource, BosTakesOnePlaceOfEachWindowAndNoTokenOfTheText) {
  const TempFolder folder;
  write_tokenizer(folder);
  const auto source = TokenSource::open(folder.write("t.txt", "abcabca"), spec_of(folder, 4, false, true));
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->count(), 2u);
  EXPECT_EQ(ids_of(**source, 0), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(ids_of(**source, 1), (Ids{0, 1, 2, 3}));
  EXPECT_EQ((*source)->where(1), "t.txt tokens 3 to 5");
}

TEST(TokenSource, MakesEachLineASampleCutToContext) {
  const TempFolder folder;
  write_tokenizer(folder);
  const auto source = TokenSource::open(folder.write("t.txt", "abcabc\r\n\nba\nc\n"), spec_of(folder, 4, true, true));
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->count(), 3u);
  EXPECT_EQ(ids_of(**source, 0), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(ids_of(**source, 1), (Ids{0, 2, 1}));
  EXPECT_EQ(ids_of(**source, 2), (Ids{0, 3}));
  EXPECT_EQ((*source)->where(1), "t.txt line 3");  // the empty line counts, and is no sample
  EXPECT_EQ((*source)->total_tokens(), 9u);        // 6 + 2 + 1
}

TEST(TokenSource, LeavesOutLinesInWhichNothingCanBePredicted) {
  const TempFolder folder;
  write_tokenizer(folder);
  const auto source = TokenSource::open(folder.write("t.txt", "c\nab\nc"), spec_of(folder, 4, true));
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->count(), 1u);
  EXPECT_EQ((*source)->short_lines(), 2u);
}

TEST(TokenSource, HashesIdsWithoutBosAndLinesBeforeTheyAreCut) {
  const TempFolder folder;
  write_tokenizer(folder);
  const std::string path = folder.write("t.txt", "abcabc\nabcabb\n");
  const auto is_same = [&](const TextSpec& a, std::size_t i, const TextSpec& b, std::size_t j) {
    return (*TokenSource::open(path, a))->hash(i) == (*TokenSource::open(path, b))->hash(j);
  };
  const Ids line{1, 2, 3, 1, 2, 3};
  EXPECT_EQ((*TokenSource::open(path, spec_of(folder, 3, true)))->hash(0), hash64(std::as_bytes(std::span(line))));
  EXPECT_TRUE(is_same(spec_of(folder, 3, true), 0, spec_of(folder, 8, true, true), 0));
  EXPECT_FALSE(is_same(spec_of(folder, 3, true), 0, spec_of(folder, 3, true), 1));
}

TEST(TokenSource, RefusesWhatGivesNoSample) {
  const TempFolder folder;
  write_tokenizer(folder);
  const std::string path = folder.write("t.txt", "abc");
  expect_error(TokenSource::open(path, spec_of(folder, 4)), ErrorCode::input,
               {"t.txt: context: expected a text of at least 4 tokens", "found 3 tokens (3 bytes)", "smaller context"});
  expect_error(TokenSource::open(path, spec_of(folder, 1)), ErrorCode::config,
               {"context: expected at least 2", "found 1"});
  expect_error(TokenSource::open(folder.write("e.txt", ""), spec_of(folder, 4)), ErrorCode::input, {"an empty file"});
  expect_error(TokenSource::open(folder.write("n.txt", "\na\n\n"), spec_of(folder, 4, true)), ErrorCode::input,
               {"n.txt: lines: expected lines of at least two tokens, found none among 3"});
  expect_error(TokenSource::open(folder.path("none.txt"), spec_of(folder, 4)), ErrorCode::input, {"none.txt"});
  TextSpec bare;
  bare.context = 4;
  expect_error(TokenSource::open(path, bare), ErrorCode::config, {"tokenizer: expected one", "tokenizer: PATH"});
}

TEST(TokenSource, RefusesBosWhereTheTokenizerNamesNone) {
  const TempFolder folder;
  write_tokenizer(folder, false);
  expect_error(TokenSource::open(folder.write("t.txt", "abcabc"), spec_of(folder, 4, false, true)), ErrorCode::input,
               {"t.txt: bos: expected", "tokenizer.json", "leave bos out"});
}

const InputInfo kInput{"input_ids", DType::i64, {-1}};

SourceSpec source_spec(const std::string& path, const TextSpec& text) {
  SourceSpec spec;
  spec.path = path;
  spec.text = text;
  return spec;
}

TEST(TextRows, GiveBatchesOfIdsAfterSkipAndUpToWindows) {
  const TempFolder folder;
  write_tokenizer(folder);
  SourceSpec spec = source_spec(folder.write("t.npz", "abcabcaabb"), spec_of(folder, 2));  // the name does not matter
  spec.skip = 1;
  spec.text->windows = 2;
  const auto source = open_source(spec, std::span(&kInput, 1));
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ((*source)->count(), 2u);
  const std::size_t both[] = {0, 1};
  const auto batch = (*source)->read_batch(both);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->inputs[0].shape(), (Shape{2, 2}));
  const auto values = batch->inputs[0].values<std::int64_t>();
  EXPECT_EQ(Ids(values.begin(), values.end()), (Ids{3, 1, 2, 3}));
  EXPECT_TRUE(batch->labels.empty());
  EXPECT_EQ((*source)->where(0), "t.npz tokens 2 to 3");
  spec.text->windows = 100;  // at most so many
  EXPECT_EQ((*open_source(spec, std::span(&kInput, 1)))->count(), 4u);
  spec.skip = 5;
  expect_error(open_source(spec, std::span(&kInput, 1)), ErrorCode::input, {"skip", "the source has 5 samples"});
}

TEST(TextRows, FitTheTypeAndRankOfTheModelsInput) {
  const TempFolder folder;
  write_tokenizer(folder);
  const SourceSpec spec = source_spec(folder.write("t.txt", "abcb"), spec_of(folder, 2));
  const std::size_t first[] = {0};
  const InputInfo narrow{"ids", DType::i32, {1, -1}};
  const auto source = open_source(spec, std::span(&narrow, 1));
  ASSERT_TRUE(source) << source.error().message;
  const auto batch = (*source)->read_batch(first);
  EXPECT_EQ(batch->inputs[0].shape(), (Shape{1, 1, 2}));
  EXPECT_EQ(batch->inputs[0].values<std::int32_t>()[1], 2);
  const InputInfo picture{"x", DType::f32, {3, 8, 8}};
  expect_error(open_source(spec, std::span(&picture, 1)), ErrorCode::input, {"'x'", "token ids", "found f32"});
  SourceSpec labelled = spec;
  labelled.labels = "y";
  expect_error(open_source(labelled, std::span(&kInput, 1)), ErrorCode::config, {"labels", "no such key for a text"});
}

TEST(TextRows, SplitsFindALineOfEvaluateInCalibrate) {
  const TempFolder folder;
  write_tokenizer(folder);
  SplitRequest request;
  request.draw_score = request.draw_select = 0;
  request.calibrate = source_spec(folder.write("a.txt", "abcabc\nccc\n"), spec_of(folder, 3, true, true));
  request.evaluate = source_spec(folder.write("b.txt", "bbb\nabcabc\n"), spec_of(folder, 6, true));
  expect_error(make_splits(request, std::span(&kInput, 1)), ErrorCode::input, {"a.txt line 1", "b.txt line 2"});
}

TEST(TextRows, AbsentSplitsAreDrawnFromTheWindowsThatAreLeft) {
  const TempFolder folder;
  write_tokenizer(folder);
  SplitRequest request;
  request.draw_select = 0;
  request.draw_score = 2;
  request.calibrate = source_spec(folder.write("a.txt", "abacbbbccacc"), spec_of(folder, 2));
  request.calibrate->text->windows = 2;
  const auto splits = make_splits(request, std::span(&kInput, 1));
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->calibrate->count(), 2u);
  ASSERT_TRUE(splits->score);
  EXPECT_EQ(splits->score->count(), 2u);
  for (std::size_t index : splits->score->indices) EXPECT_GE(splits->score->source->row(index), 2u);
}

TEST(TokenSourceReal, GivesTheSamplesOfTheProtocols) {
  CTK_REAL_DATA(folder, "stories260k");
  CTK_REAL_DATA(smollm, "smollm2/tokenizer.json");
  CTK_REAL_DATA(wiki, "text/wiki.test.raw");
  TextSpec lines;
  lines.context = 512;
  lines.lines = lines.bos = true;
  lines.tokenizer_path = folder;
  const auto stories = TokenSource::open(folder + "/tinystories_eval.txt", lines);
  ASSERT_TRUE(stories) << stories.error().message;
  ASSERT_EQ((*stories)->count(), 16u);
  std::size_t predicted = 0;
  for (std::size_t i = 0; i < 16; ++i) predicted += (*stories)->ids(i).size() - 1;
  EXPECT_EQ(predicted, 7706u);  // DATA.md
  TextSpec windows;
  windows.context = 512;
  windows.tokenizer_path = smollm;
  const auto text = TokenSource::open(wiki, windows);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ((*text)->total_tokens(), 304830u);
  EXPECT_EQ((*text)->count(), 304830u / 512);
}

TEST(TokenSource, RefusesABinaryFile) {
  const TempFolder folder;
  write_tokenizer(folder);
  const std::string path = folder.write("t.bin", std::string("abc\0abcabc", 10));
  expect_error(TokenSource::open(path, spec_of(folder, 4)), ErrorCode::input,
               {"t.bin", "UTF-8", "zero byte at byte 3"});
}

}  // namespace
}  // namespace ctk::data
