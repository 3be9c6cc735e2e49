// Sources that cannot be read: each message names the file, the input and both sides of what disagrees.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "data/rows.h"
#include "data/source.h"
#include "tests/data/small_sources.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

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

}  // namespace
}  // namespace ctk::data
