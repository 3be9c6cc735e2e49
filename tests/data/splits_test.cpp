#include "data/splits.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using namespace test;

const std::vector<InputInfo> kOne = {{"x", DType::f32, {1}}};

// Rows first, first + 1, ... of one number each.
SourceSpec rows(const TempFolder& folder, const std::string& name, std::int64_t count, float first = 0) {
  SourceSpec spec;
  spec.path = folder.write(name, npy_counting<float>({count, 1}, first));
  return spec;
}

SourceSpec part(SourceSpec spec, std::int64_t skip, std::int64_t samples) {
  spec.skip = skip;
  spec.samples = samples;
  return spec;
}

std::vector<float> values_of(const Split& split) {
  const Batch batch = split.read(0, split.count()).value();
  const auto values = batch.inputs[0].values<float>();
  return {values.begin(), values.end()};
}

bool warns(const Splits& splits, std::string_view code, std::string_view words) {
  for (const Warning& warning : splits.warnings)
    if (warning.code == code && warning.text.find(words) != std::string::npos) return true;
  return false;
}

TEST(Splits, UsesGivenSourcesWholeInFileOrder) {
  TempFolder folder;
  SplitRequest request;
  const SourceSpec file = rows(folder, "a.npy", 100);
  request.train = part(file, 50, 50);
  request.calibrate = part(file, 0, 10);
  request.score = part(file, 10, 20);
  request.select = part(file, 30, 5);
  request.evaluate = rows(folder, "b.npy", 7, 1000);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->all().size(), 5u);
  EXPECT_EQ(values_of(*splits->calibrate), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(values_of(*splits->select), (std::vector<float>{30, 31, 32, 33, 34}));
  EXPECT_EQ(splits->test->role, "test");
  EXPECT_EQ(splits->test->count(), 7u);
  EXPECT_TRUE(splits->warnings.empty());
}

TEST(Splits, DrawsAbsentRolesDisjointFromTheRestOfCalibratesFile) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = part(rows(folder, "a.npy", 2000), 0, 512);
  request.evaluate = rows(folder, "b.npy", 100, 5000);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->calibrate->count(), 512u);
  EXPECT_EQ(splits->score->count(), 256u);
  EXPECT_EQ(splits->select->count(), 512u);
  EXPECT_TRUE(splits->score->is_drawn);
  std::set<float> seen;
  std::size_t total = 0;
  for (const Split* split : splits->all()) {
    const auto values = values_of(*split);
    seen.insert(values.begin(), values.end());
    total += values.size();
  }
  EXPECT_EQ(seen.size(), total);
  EXPECT_TRUE(std::is_sorted(splits->score->indices.begin(), splits->score->indices.end()));
}

TEST(Splits, AreTheSameForOneSeedAndOthersForAnother) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = part(rows(folder, "a.npy", 3000), 0, 100);
  const auto once = make_splits(request, kOne), again = make_splits(request, kOne);
  request.seed = 1;
  const auto other = make_splits(request, kOne);
  ASSERT_TRUE(once && again && other);
  EXPECT_EQ(once->score->indices, again->score->indices);
  EXPECT_EQ(once->score->fingerprint, again->score->fingerprint);
  EXPECT_NE(once->score->fingerprint, other->score->fingerprint);
  EXPECT_EQ(once->calibrate->fingerprint, other->calibrate->fingerprint);
  EXPECT_NE(once->calibrate->fingerprint, once->score->fingerprint);
}

TEST(Splits, SharesWhatIsLeftInProportion) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = part(rows(folder, "a.npy", 112), 0, 100);  // 12 left for 256 + 512
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_EQ(splits->score->count(), 4u);
  EXPECT_EQ(splits->select->count(), 8u);
  EXPECT_TRUE(warns(*splits, "split_short", "select: 8 samples drawn instead of 512"));
}

TEST(Splits, LeavesARoleAbsentWithAWarningWhenNothingIsLeft) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = rows(folder, "a.npy", 20);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_FALSE(splits->score);
  EXPECT_FALSE(splits->select);
  EXPECT_TRUE(warns(*splits, "split_absent", "Add data.score"));
  SplitRequest alone;
  alone.evaluate = request.calibrate;
  const auto test = make_splits(alone, kOne);
  ASSERT_TRUE(test);
  EXPECT_FALSE(test->calibrate);
  EXPECT_TRUE(warns(*test, "split_absent", "neither calibrate nor train"));
}

TEST(Splits, DoesNotDrawRolesThatAreNotNeeded) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = part(rows(folder, "a.npy", 2000), 0, 100);
  request.draw_score = request.draw_select = 0;
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_EQ(splits->all().size(), 1u);
  EXPECT_TRUE(splits->warnings.empty());
}

TEST(Splits, TakesAtMostAQuarterOfTrainWhenThereIsNoOtherSource) {
  TempFolder folder;
  SplitRequest request;
  request.train = rows(folder, "a.npy", 800);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->train->count(), 600u);
  EXPECT_EQ(splits->calibrate->count(), 50u);  // 200 * 256 / 1024
  EXPECT_EQ(splits->score->count(), 50u);
  EXPECT_EQ(splits->select->count(), 100u);
  std::set<float> seen;
  for (const Split* split : splits->all())
    for (float value : values_of(*split)) EXPECT_TRUE(seen.insert(value).second) << value;
  EXPECT_TRUE(warns(*splits, "split_from_train", "200 of 800"));
}

TEST(Splits, NeverDrawsASampleOfEvaluateFromTheSameFile) {
  TempFolder folder;
  SplitRequest request;
  const SourceSpec file = rows(folder, "a.npy", 300);
  request.calibrate = part(file, 0, 100);
  request.evaluate = part(file, 150, 150);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits) << splits.error().message;
  for (const auto* split : {&splits->score, &splits->select})
    for (float value : values_of(**split)) {
      EXPECT_GE(value, 100);
      EXPECT_LT(value, 150);
    }
}

TEST(Splits, RefusesASampleOfEvaluateInAnotherSplitByContent) {
  TempFolder folder;
  SplitRequest request;
  request.calibrate = rows(folder, "cal.npy", 10);
  request.evaluate = rows(folder, "test.npy", 10, 8);  // 8 and 9 are in both
  expect_error(
      make_splits(request, kOne), ErrorCode::input,
      {"evaluate", "found 2 in calibrate", "calibrate sample 8 (cal.npy row 8)", "test sample 0 (test.npy row 0)"});
}

TEST(Splits, RefusesOverlappingRowsOfOneFile) {
  TempFolder folder;
  SplitRequest request;
  const SourceSpec file = rows(folder, "a.npy", 100);
  request.calibrate = part(file, 0, 51);
  request.evaluate = part(file, 50, 50);
  expect_error(make_splits(request, kOne), ErrorCode::input,
               {"found 1 in calibrate", "sample 50 (a.npy row 50)", "test sample 0 (a.npy row 50)"});
}

// The published keyword-spotting set holds one clip at rows 196 and 586.
TEST(Splits, LeavesOutACopyInOtherRowsOfOneFile) {
  TempFolder folder;
  SourceSpec file;
  file.path = folder.write("a.npy", npy<float>({8, 1}, {0, 1, 2, 3, 4, 2, 6, 7}));
  SplitRequest request;
  request.calibrate = part(file, 0, 4);
  request.evaluate = part(file, 4, 4);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(values_of(*splits->calibrate), (std::vector<float>{0, 1, 3}));
  EXPECT_EQ(splits->test->count(), 4u);
  EXPECT_TRUE(warns(*splits, "split_copies", "calibrate sample 2 (a.npy row 2) and test sample 1 (a.npy row 5)"));
  // A file whose second half is its first half once more is no honest test at all.
  file.path = folder.write("b.npy", npy<float>({8, 1}, {0, 1, 2, 3, 0, 1, 2, 3}));
  request.calibrate = part(file, 0, 4);
  request.evaluate = part(file, 4, 4);
  expect_error(make_splits(request, kOne), ErrorCode::input, {"found 4 in calibrate"});
}

TEST(Splits, ReportsOtherOverlapsWithCounts) {
  TempFolder folder;
  SplitRequest request;
  request.train = rows(folder, "train.npy", 100);
  request.calibrate = rows(folder, "cal.npy", 30, 90);
  request.draw_score = request.draw_select = 0;
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_TRUE(warns(*splits, "split_overlap", "train and calibrate share 10 samples"));
  EXPECT_EQ(splits->calibrate->count(), 30u);
}

TEST(Splits, DrawsNoContentTwice) {
  TempFolder folder;
  SplitRequest request;
  SourceSpec file;
  std::vector<float> values(60);
  for (std::size_t i = 0; i < 60; ++i) values[i] = static_cast<float>(i % 30);  // each value twice
  file.path = folder.write("a.npy", npy<float>({60, 1}, values));
  request.calibrate = part(file, 0, 10);
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_EQ(splits->score->count() + splits->select->count(), 19u);  // of 20 distinct others: 20/3 -> 6, 40/3 -> 13
  std::set<float> seen;
  for (const Split* split : splits->all())
    for (float value : values_of(*split)) EXPECT_TRUE(seen.insert(value).second) << value;
}

TEST(Splits, TellsOfSkippedSamplesAndNamesTheRoleOfAnError) {
  TempFolder folder;
  SplitRequest request;
  SourceSpec file;
  file.path = folder.write("a.npy", npy<float>({3, 1}, {0, std::numeric_limits<float>::quiet_NaN(), 2}));
  request.calibrate = file;
  expect_error(make_splits(request, kOne), ErrorCode::input, {"data.calibrate", "sample 1"});
  request.calibrate->on_bad_sample = BadSample::skip;
  const auto splits = make_splits(request, kOne);
  ASSERT_TRUE(splits);
  EXPECT_TRUE(warns(*splits, "samples_skipped", "calibrate: 1 bad samples skipped, the first a.npy row 1"));
  request.calibrate.reset();
  request.evaluate = file;
  expect_error(make_splits(request, kOne), ErrorCode::input, {"data.evaluate", "sample 1"});
}

TEST(Splits, ChangesFingerprintWithLabels) {
  TempFolder folder;
  const std::string x = npy_counting<float>({2, 1});
  SplitRequest a, b;
  a.calibrate.emplace().path = folder.write("a.npz", zip_of({{"x.npy", x}, {"y.npy", npy<std::int64_t>({2}, {0, 1})}}));
  b.calibrate.emplace().path = folder.write("b.npz", zip_of({{"x.npy", x}, {"y.npy", npy<std::int64_t>({2}, {1, 1})}}));
  EXPECT_NE(make_splits(a, kOne)->calibrate->fingerprint, make_splits(b, kOne)->calibrate->fingerprint);
}

// The pipelines' own sources: they must pass as they stand.
TEST(RealData, SplitsKeywordsWithoutTheClipThatIsThereTwice) {
  CTK_REAL_DATA(path, "kws/kws01_1000.npz");
  SplitRequest request;
  SourceSpec file;
  file.path = path;
  file.zero_point = 83;
  file.scale = 1.7102698;
  request.calibrate = part(file, 0, 200);
  request.evaluate = part(file, 200, 800);
  const InputInfo input{"input", DType::f32, {1, 49, 10}};
  const auto splits = make_splits(request, std::span(&input, 1));
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->calibrate->count(), 199u);
  EXPECT_EQ(splits->test->count(), 800u);
  EXPECT_TRUE(warns(*splits, "split_copies", "row 196"));
}

// 242 of the first 512 calibration pictures are among the 24,000 JPEG files: same pixels, another format.
TEST(RealData, FindsThePicturesThatAZipAndAnArrayShare) {
  CTK_REAL_DATA(zip, "cifar10/train_24000.zip");
  CTK_REAL_DATA(array, "cifar10/train_4000.npz");
  SplitRequest request;
  SourceSpec spec;
  spec.scale = 255;
  spec.path = zip;
  spec.labels = "from_folder";
  request.train = spec;
  spec.path = array;
  spec.labels = "y";
  spec.samples = 512;
  request.calibrate = spec;
  request.draw_score = request.draw_select = 0;
  const InputInfo input{"input", DType::f32, {3, 32, 32}};
  const auto splits = make_splits(request, std::span(&input, 1));
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_TRUE(warns(*splits, "split_overlap", "share 242 samples"));
}

}  // namespace
}  // namespace ctk::data
