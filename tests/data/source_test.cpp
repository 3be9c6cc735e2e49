#include "data/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "data/rows.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

const std::vector<InputInfo> kImage = {{"x", DType::f32, {3, 8, 8}}};
const std::vector<InputInfo> kRow4 = {{"x", DType::f32, {4}}};

Result<std::unique_ptr<Source>> open(const SourceSpec& spec, const std::vector<InputInfo>& inputs) {
  return open_source(spec, inputs);
}

SourceSpec spec_of(const std::string& path) {
  SourceSpec spec;
  spec.path = path;
  return spec;
}

std::vector<float> floats_of(const Batch& batch, std::size_t input = 0) {
  const auto values = batch.inputs[input].values<float>();
  return {values.begin(), values.end()};
}

TEST(Source, ReadsFloatsUnchangedWhenNoConversionIsGiven) {
  TempFolder folder;
  const auto path =
      folder.write("a.npz", zip_of({{"x.npy", npy<float>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.1f})}}));
  auto source = open(spec_of(path), kRow4);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->count(), 3u);
  EXPECT_FALSE((*source)->has_labels());
  const std::size_t indices[] = {2, 0};
  auto batch = (*source)->read_batch(indices);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->inputs[0].shape(), (Shape{2, 4}));
  EXPECT_EQ(floats_of(*batch), (std::vector<float>{8, 9, 10, 0.1f, 0, 1, 2, 3}));
}

TEST(Source, ConvertsByZeroPointScaleMeanAndStdPerChannel) {
  TempFolder folder;
  // Two samples of two channels with two elements each.
  const auto path =
      folder.write("a.npz", zip_of({{"x.npy", npy<std::uint8_t>({2, 2, 2}, {10, 20, 30, 40, 50, 60, 70, 80}), true}}));
  SourceSpec spec = spec_of(path);
  spec.zero_point = 10;
  spec.scale = 5;
  spec.mean = {1, 2};
  spec.std = {2, 4};
  auto source = open(spec, {{"x", DType::f32, {2, 2}}});
  ASSERT_TRUE(source) << source.error().message;
  const std::size_t indices[] = {0, 1};
  auto batch = (*source)->read_batch(indices);
  ASSERT_TRUE(batch);
  // channel 0: ((10-10)/5-1)/2 = -0.5, ((20-10)/5-1)/2 = 0.5; channel 1: ((30-10)/5-2)/4 = 0.5, (6-2)/4 = 1
  // second sample: (8-1)/2 = 3.5, (10-1)/2 = 4.5, (12-2)/4 = 2.5, (14-2)/4 = 3
  EXPECT_EQ(floats_of(*batch), (std::vector<float>{-0.5f, 0.5f, 0.5f, 1, 3.5f, 4.5f, 2.5f, 3}));
}

TEST(Source, ConvertsNegativeInt8ByAffineFeatures) {
  TempFolder folder;
  const auto path = folder.write("a.npz", zip_of({{"x.npy", npy<std::int8_t>({1, 4}, {-128, -1, 83, 127})}}));
  SourceSpec spec = spec_of(path);
  spec.zero_point = 83;
  spec.scale = 0.5;
  auto source = open(spec, kRow4);
  ASSERT_TRUE(source) << source.error().message;
  const std::size_t indices[] = {0};
  // (-128-83)/0.5, (-1-83)/0.5, 0, (127-83)/0.5
  EXPECT_EQ(floats_of(*(*source)->read_batch(indices)), (std::vector<float>{-422, -168, 0, 88}));
}

TEST(Source, TakesEachModelInputAndLabelsByName) {
  TempFolder folder;
  const auto path = folder.write("a.npz", zip_of({{"ids.npy", npy<std::int32_t>({2, 3}, {1, 2, 3, 4, 5, 6})},
                                                  {"mask.npy", npy<std::uint8_t>({2, 3}, {1, 1, 0, 1, 0, 0})},
                                                  {"feature.npy", npy<float>({2, 1}, {0.5f, 0.25f})},
                                                  {"target.npy", npy<std::int16_t>({2, 1}, {7, 9})}}));
  SourceSpec spec = spec_of(path);
  spec.inputs = {{"f", "feature"}, {"tokens", "ids"}};
  spec.labels = "target";
  auto source = open(spec, {{"tokens", DType::i64, {-1}}, {"mask", DType::i32, {-1}}, {"f", DType::f32, {1}}});
  ASSERT_TRUE(source) << source.error().message;
  const std::size_t indices[] = {1};
  auto batch = (*source)->read_batch(indices);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ(batch->inputs[0].values<std::int64_t>()[2], 6);
  EXPECT_EQ(batch->inputs[1].values<std::int32_t>()[0], 1);
  EXPECT_EQ(batch->inputs[2].values<float>()[0], 0.25f);
  EXPECT_EQ(batch->labels, (std::vector<std::int64_t>{9}));
}

TEST(Source, TakesArrayXForTheOnlyInputAndIntegersYForLabels) {
  TempFolder folder;
  const auto path = folder.write("a.npz", zip_of({{"x.npy", npy<float>({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7})},
                                                  {"y.npy", npy<std::int64_t>({2}, {1, 0})}}));
  auto source = open(spec_of(path), {{"pixels", DType::f32, {4}}});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_TRUE((*source)->has_labels());
  EXPECT_EQ((*source)->label(0), 1);
}

TEST(Source, DoesNotTakeFloatsNamedYForLabels) {
  TempFolder folder;
  const auto path =
      folder.write("a.npz", zip_of({{"x.npy", npy_counting<float>({2, 4})}, {"y.npy", npy_counting<float>({2})}}));
  auto source = open(spec_of(path), kRow4);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_FALSE((*source)->has_labels());
}

TEST(Source, KeepsTheFirstSamplesAfterSkip) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npy", npy_counting<float>({10, 4})));
  spec.skip = 3;
  spec.samples = 2;
  auto source = open(spec, kRow4);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->count(), 2u);
  EXPECT_EQ((*source)->where(1), "a.npy row 4");
  const std::size_t indices[] = {0, 1};
  EXPECT_EQ(floats_of(*(*source)->read_batch(indices))[4], 16.0f);
}

TEST(Source, SelectsRowsByASplitArrayOrBySuffixedArrays) {
  TempFolder folder;
  const std::string names = npy_header("<U5", "(3,)") + std::string("t\0\0\0e\0\0\0s\0\0\0t\0\0\0\0\0\0\0", 20) +
                            std::string("t\0\0\0r\0\0\0a\0\0\0i\0\0\0n\0\0\0", 20) +
                            std::string("t\0\0\0e\0\0\0s\0\0\0t\0\0\0\0\0\0\0", 20);
  SourceSpec spec = spec_of(folder.write("rows.npz", zip_of({{"x.npy", npy_counting<float>({3, 4})},
                                                             {"y.npy", npy<std::int64_t>({3}, {5, 6, 7})},
                                                             {"split.npy", names}})));
  spec.split = "test";
  auto rows = open(spec, kRow4);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ((*rows)->count(), 2u);
  EXPECT_EQ((*rows)->label(1), 7);
  EXPECT_EQ((*rows)->where(1), "rows.npz row 2");

  spec.path =
      folder.write("arrays.npz",
                   zip_of({{"x_train.npy", npy_counting<float>({5, 4})}, {"x_test.npy", npy_counting<float>({2, 4})}}));
  auto arrays = open(spec, kRow4);
  ASSERT_TRUE(arrays) << arrays.error().message;
  EXPECT_EQ((*arrays)->count(), 2u);

  spec.path = folder.write("none.npz", zip_of({{"x.npy", npy_counting<float>({3, 4})}}));
  expect_error(open(spec, kRow4), ErrorCode::input, {"split 'test'", "..._test", "x f32 [3,4]"});
  spec.path = folder.path("rows.npz");
  spec.split = "valid";
  expect_error(open(spec, kRow4), ErrorCode::input, {"split 'valid'", "'test'", "'train'"});
}

TEST(Source, GivesTheSameBatchForAnyThreadCount) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npy", npy_counting<std::uint16_t>({64, 4})));
  spec.scale = 3;
  auto source = open(spec, kRow4);
  ASSERT_TRUE(source);
  std::vector<std::size_t> all(64);
  for (std::size_t i = 0; i < 64; ++i) all[i] = i;
  set_threads(1);
  const auto one = floats_of(*(*source)->read_batch(all));
  set_threads(4);
  EXPECT_EQ(floats_of(*(*source)->read_batch(all)), one);
  set_threads(1);
}

// FAULTS B055: samples of different length along a free axis.
TEST(Source, RefusesABatchOfUnequalShapesButReadsThemOneByOne) {
  TempFolder folder;
  folder.write("f/a.png", png(7, 1, 0, std::string(7, '\1')));
  folder.write("f/b.png", png(12, 1, 0, std::string(12, '\2')));
  SourceSpec spec = spec_of(folder.path("f"));
  spec.scale = 1;
  auto source = open(spec, {{"x", DType::f32, {1, 1, -1}}});
  ASSERT_TRUE(source) << source.error().message;
  const std::size_t both[] = {0, 1};
  expect_error((*source)->read_batch(both), ErrorCode::input, {"b.png", "[1,1,12]", "one by one"});
  EXPECT_EQ((*source)->read_batch(std::span(both).subspan(1))->inputs[0].shape(), (Shape{1, 1, 1, 12}));
}

// FAULTS B059: wrong dtype, layout or name, each with both sides named.
TEST(SourceErrors, RefusesFloat64WithExpectedAndGivenType) {
  TempFolder folder;
  const auto path = folder.write("a.npz", zip_of({{"x.npy", npy_counting<double>({1, 3, 8, 8})}}));
  expect_error(open(spec_of(path), kImage), ErrorCode::input, {"input 'x'", "expected f32", "found f64", "float32"});
}

TEST(SourceErrors, RefusesChannelsLastWithBothShapes) {
  TempFolder folder;
  const auto path = folder.write("a.npz", zip_of({{"x.npy", npy_counting<float>({1, 8, 8, 3})}}));
  expect_error(open(spec_of(path), kImage), ErrorCode::input,
               {"input 'x'", "[3,8,8]", "[8,8,3]", "[1,8,8,3]", "channels come last"});
}

TEST(SourceErrors, RefusesAnInputNameTheModelLacksAndListsThose) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npz", zip_of({{"x.npy", npy_counting<float>({1, 3, 8, 8})}})));
  spec.inputs = {{"input", "x"}};
  expect_error(open(spec, kImage), ErrorCode::input, {"'input'", "The model has 'x'"});
}

TEST(SourceErrors, RefusesAnArrayNameTheFileLacksAndListsThose) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write(
      "a.npz", zip_of({{"x.npy", npy_counting<float>({1, 3, 8, 8})}, {"y.npy", npy_counting<std::int64_t>({1})}})));
  spec.inputs = {{"x", "images"}};
  expect_error(open(spec, kImage), ErrorCode::input, {"'images'", "x f32 [1,3,8,8], y i64 [1]"});
  spec.inputs.clear();
  spec.labels = "target";
  expect_error(open(spec, kImage), ErrorCode::input, {"labels", "'target'", "y i64 [1]"});
}

TEST(SourceErrors, RefusesIntegersForAFloatInputWithoutConversion) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npz", zip_of({{"x.npy", npy_counting<std::uint8_t>({1, 3, 8, 8})}})));
  expect_error(open(spec, kImage), ErrorCode::input,
               {"input 'x'", "expected f32", "found u8", "u8 needs an explicit conversion in the config"});
  spec.scale = 1;
  EXPECT_TRUE(open(spec, kImage));
}

TEST(SourceErrors, RefusesWiderIntegersForAnIntegerInput) {
  TempFolder folder;
  const auto path = folder.write("a.npy", npy_counting<std::int64_t>({2, 4}));
  expect_error(open(spec_of(path), {{"ids", DType::i32, {4}}}), ErrorCode::input,
               {"input 'ids'", "expected i32", "found i64"});
}

// FAULTS B054: nothing to work with.
TEST(SourceErrors, RefusesSourcesWithoutSamples) {
  TempFolder folder;
  expect_error(open(spec_of(folder.write("a.npy", npy_counting<float>({0, 4}))), kRow4), ErrorCode::input,
               {"found none"});
  SourceSpec spec = spec_of(folder.write("b.npy", npy_counting<float>({5, 4})));
  spec.samples = 0;
  expect_error(open(spec, kRow4), ErrorCode::config, {"samples", "at least 1", "found 0"});
  spec.samples.reset();
  spec.skip = 5;
  expect_error(open(spec, kRow4), ErrorCode::input, {"skip", "5 samples"});
  spec.skip = 2;
  spec.samples = 4;
  expect_error(open(spec, kRow4), ErrorCode::input,
               {"samples: expected at most 3", "found 4", "5 samples", "skip is 2"});
}

TEST(SourceErrors, NamesTheFirstSampleWhenEverySampleHasTheWrongShape) {
  TempFolder folder;
  const auto path = folder.write("a.npy", npy_counting<float>({6, 5}));
  expect_error(open(spec_of(path), kRow4), ErrorCode::input, {"row 0", "input 'x'", "[4]", "[5]"});
}

TEST(SourceErrors, RefusesMissingEmptyAndRandomFiles) {
  TempFolder folder;
  expect_error(open(spec_of(folder.path("none.npz")), kRow4), ErrorCode::input, {"none.npz", "found none"});
  expect_error(open(spec_of(""), kRow4), ErrorCode::input, {"found none"});
  expect_error(open(spec_of(folder.write("e.npz", "")), kRow4), ErrorCode::input, {"e.npz", "empty"});
  expect_error(open(spec_of(folder.write("e.npy", "")), kRow4), ErrorCode::input, {"e.npy", "no bytes"});
  std::string noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  expect_error(open(spec_of(folder.write("r.npz", noise)), kRow4), ErrorCode::input, {"r.npz", "zip archive"});
  expect_error(open(spec_of(folder.write("r.npy", noise)), kRow4), ErrorCode::input, {"r.npy", "NumPy array"});
  expect_error(open(spec_of(folder.write("r.zip", noise)), kRow4), ErrorCode::input, {"r.zip", "zip archive"});
  expect_error(open(spec_of(folder.write("r.csv", noise)), kRow4), ErrorCode::input,
               {"r.csv", ".npz", ".npy", "folder", ".zip"});
}

TEST(SourceErrors, ListsEveryKindOfSourceForAnUnknownName) {
  TempFolder folder;
  auto source = open(spec_of(folder.write("data.txt", "words")), kRow4);
  for (const SourceKind& kind : source_kinds()) expect_error(source, ErrorCode::input, {kind.what});
}

TEST(SourceErrors, RefusesLabelsOfTheWrongLengthOrType) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npz", zip_of({{"x.npy", npy_counting<float>({3, 4})},
                                                          {"short.npy", npy_counting<std::int64_t>({2})},
                                                          {"real.npy", npy_counting<float>({3})}})));
  spec.labels = "short";
  expect_error(open(spec, kRow4), ErrorCode::input, {"'short'", "each of 3 samples", "[2]"});
  spec.labels = "real";
  expect_error(open(spec, kRow4), ErrorCode::input, {"'real'", "expected integers", "f32"});
  spec.labels = "from_folder";
  expect_error(open(spec, kRow4), ErrorCode::input, {"from_folder", "image folders"});
}

// 2^63 as int64 is the least number there is: the message has what the file holds.
TEST(SourceErrors, NamesAnUnsignedLabelPastInt64AsItIs) {
  TempFolder folder;
  SourceSpec spec =
      spec_of(folder.write("a.npz", zip_of({{"x.npy", npy_counting<float>({2, 4})},
                                            {"y.npy", npy<std::uint64_t>({2}, {3, std::uint64_t{1} << 63})}})));
  expect_error(open(spec, kRow4), ErrorCode::input,
               {"labels", "up to 9223372036854775807", "found 9223372036854775808", "row 1"});
}

TEST(SourceErrors, NamesSampleAndValueOfALabelOutsideTheClasses) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write(
      "a.npz", zip_of({{"x.npy", npy_counting<float>({4, 4})}, {"y.npy", npy<std::int64_t>({4}, {0, 9, 10, -1})}})));
  auto source = open(spec, kRow4);
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->check_labels(11).has_value() == false);  // -1 at sample 3
  expect_error((*source)->check_labels(10), ErrorCode::input, {"0 to 9", "found 10", "sample 2", "row 2"});
  spec.samples = 2;
  EXPECT_TRUE((*open(spec, kRow4))->check_labels(10));
}

TEST(SourceErrors, RefusesArraysOfUnequalLength) {
  TempFolder folder;
  const auto path =
      folder.write("a.npz", zip_of({{"a.npy", npy_counting<float>({3, 4})}, {"b.npy", npy_counting<float>({2, 4})}}));
  expect_error(open(spec_of(path), {{"a", DType::f32, {4}}, {"b", DType::f32, {4}}}), ErrorCode::input,
               {"'a' [3,4]", "'b' [2,4]"});
}

TEST(SourceErrors, RefusesNumbersThatMakeNoSense) {
  TempFolder folder;
  const SourceSpec good = spec_of(folder.write("a.npy", npy_counting<float>({3, 4})));
  const auto changed = [&](auto change) {
    SourceSpec spec = good;
    change(spec);
    return open(spec, kRow4);
  };
  expect_error(changed([](SourceSpec& s) { s.scale = 0; }), ErrorCode::config, {"scale"});
  expect_error(changed([](SourceSpec& s) { s.std = {0.2, 0}; }), ErrorCode::config, {"std"});
  expect_error(changed([](SourceSpec& s) { s.zero_point = NAN; }), ErrorCode::config, {"zero_point"});
  expect_error(changed([](SourceSpec& s) { s.skip = -1; }), ErrorCode::config, {"skip", "-1"});
  expect_error(changed([](SourceSpec& s) { s.mean = {1, 2, 3}; }), ErrorCode::input, {"mean", "4 channels", "found 3"});
}

// FAULTS B026: one bad sample among four.
TEST(SourceErrors, NamesSampleAndInputOfANaNOrInf) {
  TempFolder folder;
  for (float bad : {NAN, std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(32, 0.5f);
    values[2 * 8 + 3] = bad;
    SourceSpec spec = spec_of(folder.write("a.npy", npy<float>({4, 8}, values)));
    const std::vector<InputInfo> inputs = {{"features", DType::f32, {8}}};
    expect_error(open(spec, inputs), ErrorCode::input,
                 {"sample 2", "'features'", "element 3", "NaN or infinite", "on_bad_sample"});
    spec.on_bad_sample = BadSample::skip;
    auto source = open(spec, inputs);
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ((*source)->count(), 3u);
    ASSERT_EQ((*source)->skipped().size(), 1u);
    EXPECT_EQ((*source)->skipped()[0].where, "a.npy row 2");
    EXPECT_EQ((*source)->where(2), "a.npy row 3");
  }
}

TEST(SourceErrors, RefusesWhenEverySampleIsSkipped) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npy", npy<float>({2, 4}, std::vector<float>(8, NAN))));
  spec.on_bad_sample = BadSample::skip;
  expect_error(open(spec, kRow4), ErrorCode::input, {"all 2 were skipped", "NaN"});
}

TEST(SourceErrors, NamesASampleThatOverflowsFloat32InConversion) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npy", npy<float>({1, 4}, {1, 1e30f, 1, 1})));
  spec.scale = 1e-30;
  auto source = open(spec, kRow4);
  ASSERT_TRUE(source);
  const std::size_t indices[] = {0};
  expect_error((*source)->read_batch(indices), ErrorCode::input, {"sample 0", "'x'", "element 1"});
}

TEST(SourceErrors, RefusesNamesAndSplitsForAPlainNpy) {
  TempFolder folder;
  SourceSpec spec = spec_of(folder.write("a.npy", npy_counting<float>({3, 4})));
  spec.labels = "y";
  expect_error(open(spec, kRow4), ErrorCode::config, {"without a name", "labels"});
  spec.labels.clear();
  expect_error(open(spec, {kRow4[0], kRow4[0]}), ErrorCode::input, {"2 inputs", ".npz"});
}

TEST(SourceHash, TellsContentsApartAndNotFilesOrStorage) {
  TempFolder folder;
  auto a = open(spec_of(folder.write("a.npy", npy_counting<float>({3, 4}))), kRow4);
  auto b = open(spec_of(folder.write("b.npz", zip_of({{"x.npy", npy_counting<float>({2, 4}, 4.0f), true}}))), kRow4);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*(*a)->hash(1), *(*b)->hash(0));
  EXPECT_NE(*(*a)->hash(0), *(*a)->hash(1));
  EXPECT_EQ((*(*a)->hashes())[2], *(*b)->hash(1));
}

TEST(RealData, ReadsTheQuickstartDigits) {
  SourceSpec spec = spec_of(std::string(CTK_SOURCE_DIR) + "/configs/quickstart/digits.npz");
  spec.scale = 16;
  auto source = open(spec, {{"input", DType::f32, {1, 8, 8}}});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->count(), 1797u);
  EXPECT_TRUE((*source)->has_labels());
  EXPECT_TRUE((*source)->check_labels(10));
}

// Expected numbers from numpy: ((x / 255 - mean) / std) in float64.
TEST(RealData, ReadsCifarPixelsAsNumpyDoes) {
  CTK_REAL_DATA(path, "cifar10/test_4000.npz");
  SourceSpec spec = spec_of(path);
  spec.inputs = {{"input", "x"}};
  spec.labels = "y";
  spec.scale = 255;
  spec.mean = {0.485, 0.456, 0.406};
  spec.std = {0.229, 0.224, 0.225};
  auto source = open(spec, {{"input", DType::f32, {3, 32, 32}}});
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->count(), 4000u);
  const std::size_t indices[] = {0, 1, 5};
  auto batch = (*source)->read_batch(indices);
  ASSERT_TRUE(batch);
  const auto values = batch->inputs[0].values<float>();
  EXPECT_FLOAT_EQ(values[0], 1.76941519f);
  EXPECT_FLOAT_EQ(values[1], 0.53643291f);
  EXPECT_FLOAT_EQ(values[3 * 3072 - 1], 0.49620915f);
  EXPECT_EQ(batch->labels[0], 5);
  EXPECT_EQ(batch->labels[2], 3);
}

}  // namespace
}  // namespace ctk::data
