#include "data/source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "data/rows.h"
#include "tests/data/small_sources.h"
#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

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
