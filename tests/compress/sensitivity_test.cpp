#include <gtest/gtest.h>

#include <cmath>

#include "compress/names.h"
#include "compress/sensitivity/change.h"
#include "compress/sensitivity/label_gradient.h"
#include "compress/sensitivity/metrics.h"
#include "tests/support/graph_builder.h"

namespace ctk::pipeline {
namespace {

using test::floats;

TEST(SensitivityMetrics, AreTheNamesOfThePipelineFileAndAllAvailable) {
  const auto rows = names(NameKind::sensitivity_metric);
  ASSERT_EQ(rows.size(), sensitivity_metrics().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].name, sensitivity_metrics()[i].name);
    EXPECT_EQ(rows[i].what, sensitivity_metrics()[i].formula);
    EXPECT_EQ(rows[i].needs, "");
  }
  const auto unknown = find_sensitivity_metric("trace");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::config);
  EXPECT_NE(unknown.error().message.find("\"trace\""), std::string::npos);
}

TEST(MeanOfSamples, GivesTheStandardErrorOfTheMean) {
  MeanOfSamples mean;
  for (double value : {1.0, 2.0, 6.0}) mean.add(value);
  // mean 3, squared deviations 4 + 1 + 9 = 14; variance 14 / 3; over 3 samples: sqrt(14 / 9)
  EXPECT_DOUBLE_EQ(mean.mean(), 3.0);
  EXPECT_DOUBLE_EQ(mean.standard_error(), std::sqrt(14.0 / 9.0));
}

TEST(MeanOfSamples, OfOneSampleHasNoError) {
  MeanOfSamples mean;
  mean.add(5.0);
  EXPECT_EQ(mean.standard_error(), 0.0);
}

TEST(LabelGradient, IsSoftmaxLessOneLabelARow) {
  // softmax of (0, ln 3) = (1/4, 3/4): the gradient is (-3/4, 3/4) for label 0, (1/4, -1/4) for label 1.
  std::vector<float> rows;
  constexpr std::size_t kRows = 4000;
  for (std::size_t i = 0; i < kRows; ++i) rows.insert(rows.end(), {0.0f, std::log(3.0f)});
  Random random(1, "test");
  const auto drawn = draw_label_gradient(floats({1, kRows, 2}, rows), random);
  ASSERT_TRUE(drawn) << drawn.error().message;
  EXPECT_EQ(drawn->rows, kRows);
  const auto g = drawn->gradient.values<float>();
  std::size_t firsts = 0;
  for (std::size_t i = 0; i < kRows; ++i) {
    const bool is_first = g[2 * i] < 0;
    firsts += is_first;
    EXPECT_NEAR(g[2 * i], is_first ? -0.75f : 0.25f, 1e-6f);
    EXPECT_NEAR(g[2 * i + 1], is_first ? 0.75f : -0.25f, 1e-6f);
  }
  // 1000 expected, standard deviation sqrt(4000 * 3/16) = 27
  EXPECT_NEAR(static_cast<double>(firsts), 1000.0, 5 * 27.4);
}

TEST(LabelGradient, DrawsOneLabelAPixelWhereClassesComeFirst) {
  Random random(1, "test");
  // Class 1 is all but certain at the first pixel, class 0 at the second.
  const auto drawn = draw_label_gradient(floats({1, 2, 1, 2}, {0, 90, 90, 0}), random);
  ASSERT_TRUE(drawn);
  EXPECT_EQ(drawn->rows, 2u);
  for (float v : drawn->gradient.values<float>()) EXPECT_NEAR(v, 0.0f, 1e-6f);
}

TEST(LabelGradient, NeverDrawsALabelWithoutAChance) {
  Random random(1, "test");
  for (int i = 0; i < 200; ++i) {
    const auto drawn = draw_label_gradient(floats({1, 3}, {-1000, 0, -1000}), random);
    ASSERT_TRUE(drawn);
    EXPECT_EQ(drawn->gradient.values<float>()[1], 0.0f);
  }
}

TEST(LabelGradient, RefusesOutputsThatAreNotFinite) {
  Random random(1, "test");
  const auto drawn = draw_label_gradient(floats({2, 2}, {0, 1, NAN, 1}), random);
  ASSERT_FALSE(drawn);
  EXPECT_NE(drawn.error().message.find("row 1"), std::string::npos) << drawn.error().message;
}

TEST(WeightedRounding, SumsSquaresOfGradientTimesError) {
  // scale 0.5, zero point 0: 0.7 -> 0.5, 200 -> 127.5, 1 stays.
  const ActivationQuant quant{0.5f, 0};
  const std::vector<float> x = {0.7f, 200.0f, 1.0f}, g = {10.0f, 0.1f, 5.0f};
  // (10 * -0.2)^2 + (0.1 * -72.5)^2 = 4 + 52.5625
  EXPECT_NEAR(weighted_rounding(x, g, quant), 56.5625, 1e-4);
}

TEST(WeightedRounding, OfGroupsTakesEachGroupsLargest) {
  // Rows of 3 in groups of 2: (127, 0.4) at scale 1 rounds 0.4 to 0; the short group (0.4) is its own largest.
  const std::vector<float> x = {127.0f, 0.4f, 0.4f}, g = {1.0f, 10.0f, 10.0f};
  EXPECT_NEAR(weighted_group_rounding(x, g, 3, 2), 16.0, 1e-4);
}

TEST(WeightError, MultipliesItsRows) {
  WeightError error{2, 3, {64, 127, -64, 0, 0, 1}, {1.0f / 64, 0.5f}};  // 1 127/64 -1; 0 0 0.5
  const std::vector<float> x = {3, 4, 5};
  EXPECT_DOUBLE_EQ(dot_error(error, 0, x.data()), 3.0 + 4 * 127.0 / 64 - 5.0);
  EXPECT_DOUBLE_EQ(dot_error(error, 1, x.data()), 2.5);
  EXPECT_EQ(error.row(1), (std::vector<float>{0, 0, 0.5f}));
}

TEST(WeightError, KeepsABytePerElementOfItsChannelsLargest) {
  WeightError error{2, 2, std::vector<std::int8_t>(4), std::vector<float>(2)};
  const float first[] = {-1.27f, 0.5f}, zeros[] = {0, 0};
  error.set(0, first);
  error.set(1, zeros);
  EXPECT_EQ(error.values, (std::vector<std::int8_t>{-127, 50, 0, 0}));
  EXPECT_NEAR(error.row(0)[1], 0.5f, 1e-6f);
  EXPECT_EQ(error.row(1), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace ctk::pipeline
