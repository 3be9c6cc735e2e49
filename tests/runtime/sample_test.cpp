#include "runtime/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace ctk::runtime {
namespace {

// Counts of `draws` picks from these logits.
std::map<std::int64_t, int> counts(const Sampling& sampling, const std::vector<float>& logits, int draws) {
  Sampler sampler(sampling, logits.size());
  std::map<std::int64_t, int> found;
  for (int i = 0; i < draws; ++i) ++found[sampler.pick(logits).value()];
  return found;
}

// Logits whose softmax is this.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

TEST(Sampler, WithoutTemperatureTakesTheFirstOfTheLargest) {
  EXPECT_EQ(Sampler({}, 4).pick(std::vector<float>{1, 3, 3, -1}).value(), 1);
}

TEST(Sampler, DrawsAsOftenAsTheModelSays) {
  Sampling sampling;
  sampling.temperature = 1;
  const auto found = counts(sampling, logits_of({0.5, 0.3, 0.2}), 10000);
  // Standard error at most sqrt(0.25 / 10000) = 0.005: four of them.
  EXPECT_NEAR(found.at(0), 5000, 200);
  EXPECT_NEAR(found.at(1), 3000, 200);
  EXPECT_NEAR(found.at(2), 2000, 200);
}

TEST(Sampler, TemperatureSharpens) {
  Sampling sampling;
  sampling.temperature = 0.5;
  // Probabilities squared and scaled to 1: 0.25, 0.09, 0.04 of 0.38.
  EXPECT_NEAR(counts(sampling, logits_of({0.5, 0.3, 0.2}), 10000).at(0), 10000 * 0.25 / 0.38, 200);
}

TEST(Sampler, TopKKeepsTheKLargestAndTheEarlierOfEquals) {
  Sampling sampling;
  sampling.temperature = 1;
  sampling.top_k = 2;
  const auto found = counts(sampling, logits_of({0.1, 0.2, 0.5, 0.2}), 7000);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(2), 5000, 200);
  EXPECT_NEAR(found.at(1), 2000, 200);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  Sampling sampling;
  sampling.temperature = 1;
  sampling.top_p = 0.75;  // 0.5 is below, 0.5 + 0.3 reaches it
  const auto found = counts(sampling, logits_of({0.15, 0.3, 0.05, 0.5}), 8000);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(3), 5000, 200);
  EXPECT_NEAR(found.at(1), 3000, 200);
}

TEST(Sampler, TheSeedDecides) {
  Sampling sampling;
  sampling.temperature = 1;
  const std::vector<float> logits = logits_of({0.25, 0.25, 0.25, 0.25});
  const auto draw = [&](std::uint64_t seed) {
    sampling.seed = seed;
    Sampler sampler(sampling, logits.size());
    std::vector<std::int64_t> ids;
    for (int i = 0; i < 32; ++i) ids.push_back(sampler.pick(logits).value());
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto picked = Sampler({}, 3).pick(std::vector<float>{0, bad, 1});
    ASSERT_FALSE(picked.has_value());
    EXPECT_NE(picked.error().message.find("for token 1"), std::string::npos);
  }
}

TEST(Sampling, RefusesNumbersOutOfRange) {
  EXPECT_TRUE(check_sampling({}));
  EXPECT_FALSE(check_sampling({-1, 0, 1, 0}));
  EXPECT_FALSE(check_sampling({std::nan(""), 0, 1, 0}));
  EXPECT_FALSE(check_sampling({1, -1, 1, 0}));
  EXPECT_FALSE(check_sampling({1, 0, 0, 0}));
  EXPECT_FALSE(check_sampling({1, 0, 1.5, 0}));
}

}  // namespace
}  // namespace ctk::runtime
