#include "calibrate/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/quant_tensor.h"
#include "core/random.h"

namespace ctk::calibrate {
namespace {

using Samples = std::vector<std::vector<float>>;

// Shows `samples` in chunks of `batch` samples, in the order given, in every pass.
Result<std::vector<Range>> collect(const ObserverOptions& options, const Samples& samples, std::size_t batch = 1,
                                   std::size_t* memory = nullptr) {
  CTK_TRY(RangeCollector collector, RangeCollector::create(options, {"x"}));
  for (int pass = 0; pass < collector.passes(); ++pass) {
    CTK_CHECK(collector.begin_pass(pass));
    for (std::size_t first = 0; first < samples.size(); first += batch) {
      std::vector<float> chunk;
      const std::size_t count = std::min(batch, samples.size() - first);
      for (std::size_t i = first; i < first + count; ++i)
        chunk.insert(chunk.end(), samples[i].begin(), samples[i].end());
      CTK_CHECK(collector.observe(0, chunk, first, count));
    }
  }
  if (memory != nullptr) *memory = collector.memory_bytes();
  return collector.finish();
}

Range range_of(const ObserverOptions& options, const Samples& samples, std::size_t batch = 1) {
  auto ranges = collect(options, samples, batch);
  EXPECT_TRUE(ranges) << ranges.error().message;
  return ranges ? ranges->at(0) : Range{};
}

std::vector<float> normal(std::uint64_t seed, std::size_t count) {
  Random random(seed, "calibration test");
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(random.normal());
  return out;
}

// Student's t with 3 degrees of freedom: heavy tails.
std::vector<float> heavy(std::uint64_t seed, std::size_t count) {
  Random random(seed, "heavy tails");
  std::vector<float> out(count);
  for (float& value : out) {
    const double a = random.normal(), b = random.normal(), c = random.normal();
    value = static_cast<float>(random.normal() / std::sqrt((a * a + b * b + c * c) / 3));
  }
  return out;
}

double squared_error(const std::vector<float>& data, const Range& range) {
  const ActivationQuant quant = activation_quant_from_range(range.low, range.high);
  double sum = 0;
  for (float value : data) {
    const double error = static_cast<double>(value) - static_cast<double>(dequantize(quantize(value, quant), quant));
    sum += error * error;
  }
  return sum / static_cast<double>(data.size());
}

class EveryObserver : public testing::TestWithParam<std::string> {
 protected:
  ObserverOptions options() const { return {GetParam(), 99.0}; }
};

INSTANTIATE_TEST_SUITE_P(Table, EveryObserver, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Observer& observer : observers()) names.emplace_back(observer.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryObserver, SaysWhatItSaw) {
  const Range range = range_of(options(), {{-1, 2, 0.5f}, {3, -0.5f}});
  EXPECT_EQ(range.value, "x");
  EXPECT_EQ(range.count, 5u);
  EXPECT_EQ(range.samples, 2u);
  EXPECT_EQ(range.method, GetParam());
  EXPECT_EQ(range.source, "calibration data");
  EXPECT_EQ(range.note, "");
  EXPECT_GE(range.low, -1.0f);
  EXPECT_LE(range.high, 3.0f);
  EXPECT_LT(range.low, range.high);
}

TEST_P(EveryObserver, DoesNotDependOnBatchSizeOrOrder) {
  // 11 samples of different length, batches of 8 and 3 (FAULTS B055).
  Samples samples;
  for (std::size_t i = 0; i < 11; ++i) samples.push_back(normal(i, i % 3 == 0 ? 700 : i % 3 == 1 ? 1200 : 3));
  const Range expected = range_of(options(), samples);
  Samples reversed(samples.rbegin(), samples.rend());
  for (std::size_t batch : {2u, 3u, 8u, 11u}) {
    for (const Samples& order : {samples, reversed}) {
      const Range found = range_of(options(), order, batch);
      EXPECT_EQ(found.low, expected.low);
      EXPECT_EQ(found.high, expected.high);
      EXPECT_EQ(found.count, expected.count);
      EXPECT_EQ(found.samples, 11u);
    }
  }
}

TEST_P(EveryObserver, MemoryDoesNotGrowWithTheData) {
  std::size_t few = 0, many = 0;
  ASSERT_TRUE(collect(options(), Samples(16, normal(1, 100)), 4, &few));
  ASSERT_TRUE(collect(options(), Samples(256, normal(1, 1000)), 4, &many));
  EXPECT_EQ(few, many);
  EXPECT_LT(many, 20000u);
}

TEST_P(EveryObserver, ConstantValuesGiveUsableScales) {
  // FAULTS B023: always zero, and a constant 0.5 that must come back within a step.
  const Range zero = range_of(options(), {{0, 0, -0.0f}, {0}});
  EXPECT_EQ(zero.low, 0.0f);
  EXPECT_EQ(zero.high, 0.0f);
  EXPECT_EQ(zero.note, "constant 0");
  EXPECT_GT(activation_quant_from_range(zero.low, zero.high).scale, 0.0f);
  for (float constant : {0.5f, -3.0f, 1e-30f}) {
    const Range range = range_of(options(), {{constant, constant}});
    EXPECT_EQ(range.low, std::min(constant, 0.0f));
    EXPECT_EQ(range.high, std::max(constant, 0.0f));
    EXPECT_NE(range.note.find("widened to hold 0"), std::string::npos);
    const ActivationQuant quant = activation_quant_from_range(range.low, range.high);
    EXPECT_TRUE(quant.scale > 0 && std::isfinite(quant.scale));
    EXPECT_NEAR(dequantize(quantize(constant, quant), quant), constant, quant.scale);
    EXPECT_EQ(dequantize(quantize(0.0f, quant), quant), 0.0f);
  }
}

TEST_P(EveryObserver, OneSidedDataKeepsZeroAtTheEnd) {
  std::vector<float> positive = normal(3, 5000);
  for (float& value : positive) value = std::max(value, 0.0f);  // as after a Relu: half are exactly 0
  const Range range = range_of(options(), {positive});
  EXPECT_EQ(range.low, 0.0f);
  EXPECT_GT(range.high, 1.0f);
  std::vector<float> shifted = normal(3, 5000);
  for (float& value : shifted) value = std::abs(value) + 2.0f;
  const Range above = range_of(options(), {shifted});
  EXPECT_EQ(above.low, 0.0f);
  EXPECT_GT(above.high, 3.0f);
  EXPECT_EQ(above.note, "widened to hold 0");
}

TEST_P(EveryObserver, NamesValueAndSampleOfBadNumbers) {
  // FAULTS B026: sample 2 of 4 is bad; in one batch of four as well as one at a time.
  const std::pair<float, const char*> bad[] = {
      {std::nanf(""), "NaN"}, {INFINITY, "+infinity"}, {-INFINITY, "-infinity"}};
  for (const auto& [value, word] : bad) {
    Samples samples;
    for (std::size_t i = 0; i < 4; ++i) samples.push_back(normal(i, 8));
    samples[2][5] = value;
    for (std::size_t batch : {1u, 2u, 4u}) {
      auto found = collect(options(), samples, batch);
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, ErrorCode::input);
      EXPECT_NE(found.error().message.find("value \"x\", sample 2: expected finite numbers, found " +
                                           std::string(word) + " at element 5"),
                std::string::npos)
          << found.error().message;
    }
  }
}

TEST_P(EveryObserver, ABadSampleCanBeLeftOutByBeginningAgain) {
  auto collector = RangeCollector::create(options(), {"x"});
  ASSERT_TRUE(collector);
  const std::vector<float> good = normal(1, 3000), bad{1e9f, std::nanf("")};
  for (int pass = 0; pass < collector->passes(); ++pass) {
    ASSERT_TRUE(collector->begin_pass(pass));
    ASSERT_TRUE(collector->observe(0, good, 0));
    ASSERT_FALSE(collector->observe(0, bad, 1));
    ASSERT_TRUE(collector->begin_pass(pass));
    ASSERT_TRUE(collector->observe(0, good, 0));
  }
  const Range expected = range_of(options(), {good});
  EXPECT_EQ(collector->finish()->at(0).low, expected.low);
  EXPECT_EQ(collector->finish()->at(0).high, expected.high);
}

TEST_P(EveryObserver, ExtremeMagnitudesStayFinite) {
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& data :
       {std::vector<float>{-most, most, 1, 2}, {0, least, 3 * least}, {-1e-40f, 1e-38f, 5e-39f}}) {
    const Range range = range_of(options(), {data});
    EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high));
    EXPECT_LE(range.low, 0.0f);
    EXPECT_GE(range.high, 0.0f);
  }
}

TEST(MinMax, IsTheGlobalExtentOfAllSamples) {
  Samples samples{{0.25f, -1.5f, 3}, {7.75f}, {-2.25f, 0}};
  const Range range = range_of({"minmax", 99.99}, samples, 2);
  EXPECT_EQ(range.low, -2.25f);
  EXPECT_EQ(range.high, 7.75f);
}

TEST(Percentile, ClipsTheShareAtEachEnd) {
  // -1024 .. 1024 over 2048 bins of width 1: each bin holds its lower edge, the last one its upper edge too.
  std::vector<float> data(2049);
  std::iota(data.begin(), data.end(), -1024.0f);
  // 1 % of 2049 is 20 at each end. Low: bins -1024 .. -1005 are dropped whole. High: the last bin holds 1023 and 1024,
  // so 19 bins (20 numbers, 1005 .. 1024) go.
  const Range range = range_of({"percentile", 99.0}, {data});
  EXPECT_EQ(range.low, -1004.0f);
  EXPECT_EQ(range.high, 1005.0f);
}

TEST(Percentile, NeverClipsMoreThanItsShare) {
  const std::vector<float> data = heavy(5, 20000);
  const Range range = range_of({"percentile", 99.9}, {data});
  const auto above = std::count_if(data.begin(), data.end(), [&](float v) { return v > range.high; });
  const auto below = std::count_if(data.begin(), data.end(), [&](float v) { return v < range.low; });
  EXPECT_LE(above, 20);
  EXPECT_LE(below, 20);
  EXPECT_GT(above + below, 0);
  EXPECT_LT(range.high, *std::max_element(data.begin(), data.end()));
}

TEST(Percentile, OfAHundredIsMinMax) {
  const std::vector<float> data = heavy(6, 1000);
  const Range all = range_of({"percentile", 100.0}, {data}), extent = range_of({"minmax", 100.0}, {data});
  EXPECT_EQ(all.low, extent.low);
  EXPECT_EQ(all.high, extent.high);
}

TEST(Mse, IsNeverWorseThanMinMaxOnTheDataItself) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<float> data = seed % 3 == 0 ? normal(seed, 20000) : heavy(seed, 20000);
    if (seed % 2 == 1) {
      for (float& value : data) value = std::max(value, 0.0f);
    }
    const double mse = squared_error(data, range_of({"mse", 99.99}, {data}));
    const double minmax = squared_error(data, range_of({"minmax", 99.99}, {data}));
    EXPECT_LE(mse, minmax);
  }
}

TEST(Mse, ComesCloseToTheBestRangeOfAFineGrid) {
  // Uniform bulk in [-1, 1] and one outlier of 40 in 20001: clipping it costs (40 - h)^2 / n, keeping it (41 / 255)^2
  // / 12.
  std::vector<float> data(20000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = -1.0f + 2.0f * static_cast<float>(i) / 19999.0f;
  data.push_back(40.0f);
  const double found = squared_error(data, range_of({"mse", 99.99}, {data}));
  double best = 1e9;
  for (int high = 1; high <= 80; ++high) {
    for (int low = 1; low <= 4; ++low) {
      Range range;
      range.low = -0.25f * static_cast<float>(low);
      range.high = 0.5f * static_cast<float>(high);
      best = std::min(best, squared_error(data, range));
    }
  }
  EXPECT_LE(found, best * 1.05);
}

TEST(Entropy, KeepsUniformDataWholeAndClipsALoneOutlier) {
  std::vector<float> data(50000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) / 49999.0f;
  // Every level holds the same mass over the whole extent: nothing is gained by clipping.
  EXPECT_GT(range_of({"entropy", 99.99}, {data}).high, 0.95f);
  std::vector<float> bell = normal(9, 50000);
  bell.push_back(30.0f);
  const Range range = range_of({"entropy", 99.99}, {bell});
  EXPECT_LT(range.high, 10.0f);
  EXPECT_GT(range.high, 2.0f);
  EXPECT_LT(range.low, -2.0f);
}

TEST(RangeCollector, RefusesAnEmptyCalibrationSet) {
  // FAULTS B054.
  for (const char* method : {"minmax", "mse"}) {
    auto found = collect({method, 99.99}, {});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::input);
    EXPECT_NE(found.error().message.find("calibration set"), std::string::npos) << found.error().message;
  }
}

TEST(RangeCollector, RefusesAValueThatNoSampleReached) {
  auto collector = RangeCollector::create({"minmax", 99.99}, {"seen", "unseen"});
  ASSERT_TRUE(collector);
  ASSERT_TRUE(collector->begin_pass(0));
  const std::vector<float> data{1, 2};
  ASSERT_TRUE(collector->observe(0, data, 0));
  auto found = collector->finish();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("value \"unseen\": expected at least one element"), std::string::npos);
}

TEST(RangeCollector, NoticesPassesThatSeeDifferentData) {
  auto collector = RangeCollector::create({"mse", 99.99}, {"x"});
  ASSERT_TRUE(collector);
  const std::vector<float> data{1, 2, 3};
  ASSERT_TRUE(collector->begin_pass(0));
  ASSERT_TRUE(collector->observe(0, data, 0));
  ASSERT_TRUE(collector->begin_pass(1));
  auto found = collector->finish();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("3 elements in the first and 0 in the second"), std::string::npos);
}

TEST(RangeCollector, RefusesUnknownMethodsAndShares) {
  auto unknown = RangeCollector::create({"guess", 99.99}, {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::config);
  EXPECT_NE(unknown.error().message.find("minmax, percentile, entropy, mse, found \"guess\""), std::string::npos);
  for (double share : {0.0, 50.0, 100.5, std::nan("")}) {
    EXPECT_EQ(RangeCollector::create({"percentile", share}, {}).error().code, ErrorCode::config);
  }
}

TEST(RangeCollector, RefusesPassesOutOfOrder) {
  auto collector = RangeCollector::create({"mse", 99.99}, {"x"});
  ASSERT_TRUE(collector);
  const std::vector<float> data{1, 2, 3};
  EXPECT_EQ(collector->observe(0, data, 0).error().code, ErrorCode::internal);
  EXPECT_EQ(collector->begin_pass(1).error().code, ErrorCode::internal);
  EXPECT_EQ(collector->finish().error().code, ErrorCode::internal);
}

// Each collector sees a part of the samples, takes what all saw, and goes on with the next pass.
std::vector<Range> collected_apart(const ObserverOptions& options, const std::vector<Samples>& parts) {
  std::vector<RangeCollector> collectors;
  while (collectors.size() < parts.size()) collectors.push_back(RangeCollector::create(options, {"x"}).value());
  for (int pass = 0; pass < collectors[0].passes(); ++pass) {
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(collectors[i].begin_pass(pass));
      for (const auto& sample : parts[i]) EXPECT_TRUE(collectors[i].observe(0, sample, 0));
      seen.push_back(collectors[i].seen());
    }
    for (RangeCollector& collector : collectors) EXPECT_TRUE(collector.take(seen));
  }
  std::vector<Range> ranges;
  for (const RangeCollector& collector : collectors) ranges.push_back(collector.finish().value()[0]);
  return ranges;
}

TEST(RangeCollector, PartsSeenApartGiveTheRangeOfTheWhole) {
  const Samples all{normal(1, 4000), heavy(2, 3000), normal(3, 500)};
  for (const Observer& observer : observers()) {
    const ObserverOptions options{std::string(observer.name), 99.9};
    const Range whole = range_of(options, all);
    for (const auto& parts : {std::vector<Samples>{{all[0]}, {all[1], all[2]}}, {{}, {all[0], all[1]}, {all[2]}}}) {
      for (const Range& range : collected_apart(options, parts)) {
        EXPECT_EQ(range.low, whole.low) << observer.name;
        EXPECT_EQ(range.high, whole.high) << observer.name;
        EXPECT_EQ(range.count, 7500u);
        EXPECT_EQ(range.samples, 3u);
      }
    }
  }
}

TEST(RangeCollector, RefusesWhatIsNoPartOfIts) {
  auto collector = RangeCollector::create({}, {"x"}).value();
  ASSERT_TRUE(collector.begin_pass(0));
  const std::string torn(5, 'x');
  EXPECT_FALSE(collector.take({&torn, 1}));
}

TEST(RangeCollector, AHistogramServesEveryObserver) {
  const Samples data{heavy(7, 4000)};
  RangeCollector collector = RangeCollector::create({"mse", 99.0}, {"x"}).value();
  for (int pass = 0; pass < collector.passes(); ++pass) {
    ASSERT_TRUE(collector.begin_pass(pass));
    ASSERT_TRUE(collector.observe(0, data[0], 0));
  }
  for (const Observer& observer : observers()) {
    const Range alone = range_of({std::string(observer.name), 99.0}, data);
    const auto shared = collector.finish_by(observer.name);
    ASSERT_TRUE(shared) << shared.error().message;
    EXPECT_EQ(shared->at(0).low, alone.low) << observer.name;
    EXPECT_EQ(shared->at(0).high, alone.high) << observer.name;
    EXPECT_EQ(shared->at(0).method, observer.name);
  }
}

TEST(RangeCollector, WithoutAHistogramOthersAreRefused) {
  RangeCollector collector = RangeCollector::create({"minmax", 99.0}, {"x"}).value();
  ASSERT_TRUE(collector.begin_pass(0) && collector.observe(0, normal(1, 10), 0));
  const auto refused = collector.finish_by("mse");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config) << refused.error().message;
}

}  // namespace
}  // namespace ctk::calibrate
