#include "data/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/data/write_files.h"

namespace ctk::data {
namespace {

using test::expect_error;

Tensor outputs(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(std::move(shape), values);
}

MetricValue value_of(std::string_view name, const Tensor& output, const std::vector<std::int64_t>& labels,
                     const Tensor& reference = {}) {
  MetricSum sum(**find_metric(name));
  const Status status = sum.add(output.view(), labels, reference.is_defined() ? reference.view() : TensorView{});
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return sum.value().value();
}

TEST(Metric, Top1CountsArgMaxWithTiesToTheLowerIndex) {
  // arg-max: 1, 0 (tie of 0 and 2), 2, 0 -> right, right, wrong, wrong
  const Tensor out = outputs({4, 3}, {0, 5, 1, 7, 1, 7, 0, 0, 1, 3, 2, 1});
  const MetricValue got = value_of("top1", out, {1, 0, 1, 2});
  EXPECT_EQ(got.value, 0.5);
  EXPECT_EQ(got.count, 4u);
  EXPECT_DOUBLE_EQ(got.standard_error, std::sqrt(0.5 * 0.5 / 4));
}

TEST(Metric, Top5TakesTheFiveFirstAndTiesToTheLowerIndex) {
  // all seven equal: 0..4 are the first five
  const Tensor out = outputs({2, 7}, std::vector<float>(14, 1.0f));
  EXPECT_EQ(value_of("top5", out, {4, 5}).value, 0.5);
}

TEST(Metric, AgreementComparesArgMaxima) {
  const Tensor a = outputs({3, 2}, {1, 2, 2, 1, 1, 1}), b = outputs({3, 2}, {0, 9, 1, 3, 4, 0});
  EXPECT_DOUBLE_EQ(value_of("agreement", a, {}, b).value, 2.0 / 3.0);
}

// FAULTS B071: KL(softmax[0,2] || softmax[2,0]) = 1.523188 by hand: p = 0.880797; (2p - 1) * 2.
TEST(Metric, KlIsMeanOverSamplesInNats) {
  const float reference[] = {0, 2}, output[] = {2, 0};
  EXPECT_NEAR(kl_of_rows(reference, output), 1.523188, 1e-6);
  const Tensor out = outputs({2, 2}, {2, 0, 5, 5}), ref = outputs({2, 2}, {0, 2, 5, 5});
  const MetricValue got = value_of("kl", out, {}, ref);
  EXPECT_NEAR(got.value, 1.523188 / 2, 1e-6);
  EXPECT_NEAR(got.standard_error, 1.523188 / 2 / std::sqrt(2.0), 1e-6);
}

TEST(Metric, KlStaysFiniteForLargeOutputsAndZeroForEqualOnes) {
  const float far[] = {1000, -1000}, near[] = {-1000, 1000};
  EXPECT_DOUBLE_EQ(kl_of_rows(far, near), 2000.0);
  EXPECT_EQ(kl_of_rows(far, far), 0.0);
  const float shifted[] = {3000, 1000};  // softmax does not see a shift
  EXPECT_EQ(kl_of_rows(far, shifted), 0.0);
}

TEST(Metric, MseAndSqnrCompareWithTheFloatOutputs) {
  const Tensor out = outputs({2, 2}, {1, 1, 4, 4}), ref = outputs({2, 2}, {1, 2, 4, 6});
  // squared errors 0 1 0 4: samples 0.5 and 2
  EXPECT_DOUBLE_EQ(value_of("mse", out, {}, ref).value, 1.25);
  // signal 1 + 4 + 16 + 36 = 57, noise 5
  const MetricValue sqnr = value_of("sqnr_db", out, {}, ref);
  EXPECT_DOUBLE_EQ(sqnr.value, 10 * std::log10(57.0 / 5.0));
  // sum of (s_i/57 - n_i/5)^2 with s = 5, 52 and n = 1, 4
  const double a = 5.0 / 57 - 1.0 / 5, b = 52.0 / 57 - 4.0 / 5;
  EXPECT_NEAR(sqnr.standard_error, 10 / std::log(10.0) * std::sqrt(a * a + b * b), 1e-9);
  EXPECT_EQ(value_of("sqnr_db", ref, {}, ref).value, std::numeric_limits<double>::infinity());
}

TEST(Metric, ReadsTokensByTheLastAxisAndPixelsByTheSecond) {
  // one sample, two tokens of three classes
  const Tensor tokens = outputs({1, 2, 3}, {0, 1, 0, 1, 0, 0}), other = outputs({1, 2, 3}, {0, 1, 0, 0, 0, 1});
  EXPECT_EQ(value_of("agreement", tokens, {}, other).value, 0.5);
  // one sample, three classes, two pixels: pixel 0 has classes 0 1 0, pixel 1 has 1 0 0
  const Tensor pixels = outputs({1, 3, 1, 2}, {0, 1, 1, 0, 0, 0}), others = outputs({1, 3, 1, 2}, {0, 0, 1, 0, 0, 1});
  EXPECT_EQ(value_of("agreement", pixels, {}, others).value, 0.5);
  EXPECT_EQ(value_of("top1", outputs({2, 2, 1, 1}, {0, 1, 1, 0}), {1, 0}).value, 1.0);
}

TEST(Metric, DoesNotDependOnTheBatches) {
  std::vector<float> a(40), b(40);
  for (std::size_t i = 0; i < 40; ++i)
    a[i] = std::sin(static_cast<float>(i)), b[i] = std::cos(static_cast<float>(3 * i));
  for (const MetricInfo& info : metrics()) {
    const std::vector<std::int64_t> labels = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1};
    MetricSum pieces(info);
    for (std::size_t at : {0u, 3u, 4u, 9u}) {
      const std::size_t next = at == 0 ? 3 : at == 3 ? 4 : at == 4 ? 9 : 10, n = next - at;
      const Shape shape = {static_cast<std::int64_t>(n), 4};
      ASSERT_TRUE(pieces.add({DType::f32, shape, a.data() + at * 4}, std::span(labels).subspan(at, n),
                             {DType::f32, shape, b.data() + at * 4}));
    }
    const MetricValue whole = value_of(info.name, outputs({10, 4}, a), labels, outputs({10, 4}, b));
    EXPECT_EQ(pieces.value()->value, whole.value) << info.name;
    EXPECT_EQ(pieces.value()->standard_error, whole.standard_error) << info.name;
  }
}

// Two texts of 3 and 2 tokens over a vocabulary of 2: losses log 2 each where logits are equal, log(1 + 1/e) where the
// next token is ahead by 1. Tokens count alike: exp((2 * log 2 + log(1 + 1/e)) / 3).
TEST(Metric, PerplexityCountsTokensNotTexts) {
  MetricSum sum(**find_metric("perplexity"));
  const auto ids = [](std::vector<std::int64_t> values) {
    return Tensor::of<std::int64_t>({1, static_cast<std::int64_t>(values.size())}, values);
  };
  const auto first = next_tokens(ids({0, 1, 1})), second = next_tokens(ids({1, 0}));
  EXPECT_EQ(*first, (std::vector<std::int64_t>{1, 1, -1}));
  ASSERT_TRUE(sum.add(outputs({1, 3, 2}, {5, 5, -1, -1, 9, 0}).view(), *first).has_value());
  ASSERT_TRUE(sum.add(outputs({1, 2, 2}, {3, 2, 0, 9}).view(), *second).has_value());
  const double ahead = std::log1p(std::exp(-1.0)), mean = (2 * std::log(2.0) + ahead) / 3;
  EXPECT_NEAR(sum.value()->value, std::exp(mean), 1e-6);
  EXPECT_EQ(sum.value()->count, 3u);
  // Residuals of the texts: 2 log 2 - 2 mean and ahead - mean.
  const double miss = std::hypot(2 * std::log(2.0) - 2 * mean, ahead - mean) / 3;
  EXPECT_NEAR(sum.value()->standard_error, std::exp(mean) * miss, 1e-6);
  expect_error(sum.add(outputs({1, 2, 2}, {3, 2, 0, 9}).view(), *next_tokens(ids({0, 2}))), ErrorCode::input,
               {"ids 0 to 1", "found 2"});
}

TEST(MetricErrors, NamesWhatDoesNotFit) {
  MetricSum top1(**find_metric("top1"));
  const Tensor out = outputs({2, 3}, {0, 1, 2, 3, 4, 5});
  const std::int64_t labels[] = {0, 3}, one[] = {0};
  expect_error(top1.value(), ErrorCode::input, {"found none"});
  expect_error(top1.add(out.view(), labels), ErrorCode::input, {"labels 0 to 2", "found 3", "sample 1"});
  expect_error(top1.add(out.view(), one), ErrorCode::input, {"1 labels"});
  expect_error(top1.add(outputs({3}, {1, 2, 3}).view(), labels), ErrorCode::input, {"[3]"});
  MetricSum kl(**find_metric("kl"));
  expect_error(kl.add(out.view(), {}, outputs({2, 2}, {0, 1, 2, 3}).view()), ErrorCode::input, {"[2,3]", "[2,2]"});
  expect_error(find_metric("acuracy"), ErrorCode::config, {"'acuracy'", "top1, top5"});
}

TEST(MetricErrors, RefusesNaNAndInfInOutputs) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    MetricSum top1(**find_metric("top1"));
    const std::int64_t labels[] = {0, 0};
    expect_error(top1.add(outputs({2, 2}, {0, 1, bad, 2}).view(), labels), ErrorCode::input,
                 {"sample 1", "finite", "element 0"});
    MetricSum kl(**find_metric("kl"));
    expect_error(kl.add(outputs({1, 2}, {0, 1}).view(), {}, outputs({1, 2}, {0, bad}).view()), ErrorCode::input,
                 {"float network"});
  }
}

// FAULTS B074, row by row.
TEST(Drop, IsPositiveWhenWorseWhateverTheSignAndDirection) {
  const Drop negative = *drop_of(-0.40, -0.44, Better::higher, true);
  EXPECT_NEAR(negative.value, 0.10, 1e-12);
  EXPECT_FALSE(is_within(negative, 0.01));
  const Drop perplexity = *drop_of(10, 12, Better::lower, true);
  EXPECT_NEAR(perplexity.value, 0.20, 1e-12);
  EXPECT_FALSE(is_within(perplexity, 0.05));
  const Drop better = *drop_of(10, 8, Better::lower, true);
  EXPECT_NEAR(better.value, -0.20, 1e-12);
  EXPECT_TRUE(is_within(better, 0.05));
  EXPECT_NEAR(drop_of(0.8733, 0.8703, Better::higher, false)->value, 0.003, 1e-12);
}

TEST(Drop, RefusesAZeroBaselineWithARelativeLimitAndAnythingNotFinite) {
  expect_error(drop_of(0.0, 0.0036, Better::lower, true), ErrorCode::input,
               {"baseline of 0", "0.0036", "absolute limit"});
  EXPECT_NEAR(drop_of(0.0, 0.0036, Better::lower, false)->value, 0.0036, 1e-12);
  expect_error(drop_of(NAN, 1, Better::higher, false), ErrorCode::input, {"finite"});
  expect_error(drop_of(1, INFINITY, Better::higher, false), ErrorCode::input, {"finite"});
  expect_error(drop_of(5e-324, 1, Better::lower, true), ErrorCode::input, {"too small"});
  EXPECT_FALSE(is_within({NAN, false}, 1));
  EXPECT_FALSE(is_within({0.1, false}, NAN));
}

}  // namespace
}  // namespace ctk::data
