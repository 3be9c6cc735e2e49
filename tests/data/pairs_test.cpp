// Pairs of texts with a score, and the metrics of embeddings: values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "core/tensor.h"
#include "data/metric.h"

namespace ctk::data {
namespace {

Tensor rows(Shape shape, std::vector<float> values) {
  return Tensor::of<float>(std::move(shape), values);
}

TEST(RankCorrelation, TiesTakeTheirMeanRank) {
  const double a[] = {1, 2, 2, 4}, b[] = {10, 30, 20, 40};
  // Ranks 1, 2.5, 2.5, 4 and 1, 3, 2, 4: covariance 4.5, variances 4.5 and 5.
  EXPECT_DOUBLE_EQ(rank_correlation(a, b), 4.5 / std::sqrt(4.5 * 5.0));
  const double falling[] = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rank_correlation(b, falling), -0.8);
  const double flat[] = {1, 1, 1, 1};
  EXPECT_TRUE(std::isnan(rank_correlation(flat, b)));
}

TEST(PairLabel, HoldsPairAndScore) {
  EXPECT_NE(pair_label(0, 3.8), pair_label(1, 3.8));
  EXPECT_LT(pair_label(7, -2.5), pair_label(7, 0));
  EXPECT_LT(pair_label(7, 0), pair_label(7, 2.5));
}

TEST(Spearman, PairsMeetInAnyOrder) {
  MetricSum sum(**find_metric("spearman"));
  // Means over two rows: pair 0 (1, 0) and (1, 0), cosine 1; pair 1 (0, 1) and (1, 1), cosine 0.707; pair 2 (1, 0) and
  // (0, 1), cosine 0. Scores 5, 1, 2: ranks 3, 2, 1 against 3, 1, 2.
  const Tensor first = rows({3, 2, 2}, {2, 0, 0, 0, 0, 1, 0, 1, 0, 1, 2, -1});
  const Tensor second = rows({3, 2, 2}, {1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1});
  const std::vector<std::int64_t> labels_a = {pair_label(0, 5), pair_label(1, 1), pair_label(2, 2)};
  const std::vector<std::int64_t> labels_b = {pair_label(0, 5), pair_label(1, 1), pair_label(2, 2)};
  ASSERT_TRUE(sum.add(first.view(), labels_a));
  ASSERT_TRUE(sum.add(second.view(), labels_b));
  const auto value = sum.value();
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_DOUBLE_EQ(value->value, 0.5);
  EXPECT_EQ(value->count, 3u);
}

TEST(Spearman, HalfPairsAreNoPairs) {
  MetricSum sum(**find_metric("spearman"));
  const Tensor output = rows({2, 1, 2}, {1, 0, 0, 1});
  ASSERT_TRUE(sum.add(output.view(), std::vector<std::int64_t>{pair_label(0, 5), pair_label(1, 1)}));
  EXPECT_FALSE(sum.value());
  EXPECT_FALSE(MetricSum(**find_metric("spearman")).add(output.view(), {}));
}

TEST(Cosine, OfMeansOverRows) {
  MetricSum sum(**find_metric("cosine"));
  // Sample 0: (1, 1) against (1, 0): 0.7071; sample 1: opposite: -1.
  const Tensor output = rows({2, 2, 2}, {2, 0, 0, 2, 0, 3, 0, 3});
  const Tensor wanted = rows({2, 2, 2}, {1, 0, 1, 0, 0, -1, 0, -1});
  ASSERT_TRUE(sum.add(output.view(), {}, wanted.view()));
  EXPECT_NEAR(sum.value()->value, (std::sqrt(0.5) - 1.0) / 2.0, 1e-12);
}

}  // namespace
}  // namespace ctk::data
