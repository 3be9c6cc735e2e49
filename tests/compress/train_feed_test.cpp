#include "compress/train_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/graph_builder.h"
#include "tests/support/made_rows.h"

namespace ctk::test {
namespace {

using pipeline::Augment;
using pipeline::SplitFeed;

constexpr std::int64_t kSide = 9;
constexpr std::size_t kPlane = kSide * kSide, kSamples = 16;

struct Pictures {
  Pictures() {
    GraphBuilder b;
    b.output(b.node("Relu", {b.input("x", {-1, 2, kSide, kSide})}, "y"));
    graph = std::move(b.graph);
    split = made_split(graph, {2, kSide, kSide}, kSamples);
    samples.resize(kSamples);
    std::iota(samples.begin(), samples.end(), std::size_t{0});
  }
  // All samples in one batch.
  train::Feed::Batch read(const Augment& augment, std::int64_t epoch = 0) const {
    auto feed = SplitFeed::open(split, augment);
    EXPECT_TRUE(feed) << feed.error().message;
    auto batch = (*feed)->read(samples, epoch);
    EXPECT_TRUE(batch) << batch.error().message;
    return std::move(*batch);
  }
  graph::Graph graph;
  data::Split split;
  std::vector<std::size_t> samples;
};

TEST(TrainFeed, CutoutBlanksOneSquareInAllChannelsAndNothingElse) {
  const Pictures pictures;
  const Tensor before = pictures.read({}).inputs[0], after = pictures.read({false, 0, 3, 0, 5}).inputs[0];
  std::size_t whole = 0;
  for (std::size_t n = 0; n < kSamples; ++n) {
    std::vector<std::size_t> cut[2];
    for (std::size_t i = 0; i < 2 * kPlane; ++i) {
      const float was = before.values<float>()[n * 2 * kPlane + i], is = after.values<float>()[n * 2 * kPlane + i];
      ASSERT_NE(was, 0.0f);
      if (is == 0.0f) {
        cut[i / kPlane].push_back(i % kPlane);
      } else {
        ASSERT_EQ(is, was);
      }
    }
    ASSERT_EQ(cut[0], cut[1]);
    ASSERT_FALSE(cut[0].empty());  // its middle is in the picture
    const std::size_t first = cut[0].front(), last = cut[0].back();
    const std::size_t height = last / kSide - first / kSide + 1, width = last % kSide - first % kSide + 1;
    EXPECT_LE(std::max(height, width), 3u);
    EXPECT_GE(std::min(height, width), 2u);  // at an edge one of three rows is outside
    EXPECT_EQ(cut[0].size(), height * width);
    whole += cut[0].size() == 9 ? 1 : 0;
  }
  EXPECT_GT(whole, kSamples / 4);
}

TEST(TrainFeed, MixupMixesPairsOfABatchByOneShare) {
  const Pictures pictures;
  const Tensor before = pictures.read({}).inputs[0];
  const train::Feed::Batch mixed = pictures.read({false, 0, 0, 0.8, 5});
  ASSERT_GT(mixed.share, 0);
  ASSERT_LT(mixed.share, 1);
  std::vector<std::size_t> partners;
  for (std::size_t n = 0; n < kSamples; ++n) {
    for (std::size_t other = 0; other < kSamples; ++other) {
      double miss = 0;
      for (std::size_t i = 0; i < 2 * kPlane; ++i) {
        const double a = before.values<float>()[n * 2 * kPlane + i], b = before.values<float>()[other * 2 * kPlane + i];
        const double is = mixed.inputs[0].values<float>()[n * 2 * kPlane + i];
        miss = std::max(miss, std::abs(mixed.share * a + (1 - mixed.share) * b - is));
      }
      if (miss < 1e-5) partners.push_back(other);
    }
  }
  std::ranges::sort(partners);
  EXPECT_EQ(partners, pictures.samples);  // each takes part twice
}

// Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)): 1/12 for a = 1, 1/8 for a = 1/2.
TEST(TrainFeed, SharesOfMixupAreSpreadAsBeta) {
  const Pictures pictures;
  for (const double a : {1.0, 0.5}) {
    const auto feed = SplitFeed::open(pictures.split, {false, 0, 0, a, 3});
    ASSERT_TRUE(feed);
    double sum = 0, squares = 0;
    constexpr int kEpochs = 4000;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const std::size_t one[] = {0};
      const double share = (*feed)->read(one, epoch)->share;
      sum += share, squares += share * share;
    }
    const double mean = sum / kEpochs, variance = squares / kEpochs - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.02);
    EXPECT_NEAR(variance, 1 / (4 * (2 * a + 1)), 0.006);
  }
}

TEST(TrainFeed, TheSameEpochGivesTheSamePicturesAndAnotherOthers) {
  const Pictures pictures;
  const Augment all{true, 2, 3, 1.0, 7};
  const auto first = pictures.read(all, 0), again = pictures.read(all, 0), next = pictures.read(all, 1);
  EXPECT_EQ(first.share, again.share);
  EXPECT_TRUE(std::ranges::equal(first.inputs[0].values<float>(), again.inputs[0].values<float>()));
  EXPECT_FALSE(std::ranges::equal(first.inputs[0].values<float>(), next.inputs[0].values<float>()));
}

}  // namespace
}  // namespace ctk::test
