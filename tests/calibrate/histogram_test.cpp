#include "calibrate/histogram.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace ctk::calibrate {
namespace {

TEST(Extent, IsTheSameWhereverAnElementStands) {
  for (std::size_t at = 0; at < 37; ++at) {  // past two blocks of 16 lanes
    std::vector<float> data(37, 0.5f);
    data[at] = -3.0f;
    data[(at + 5) % 37] = 8.0f;
    Extent extent;
    extent.add(data);
    EXPECT_EQ(extent.low, -3.0f);
    EXPECT_EQ(extent.high, 8.0f);
    EXPECT_EQ(extent.count, 37u);
  }
}

TEST(Extent, HasNoNegativeZero) {
  for (const std::vector<float>& data : {std::vector<float>{-0.0f, 0.0f}, {0.0f, -0.0f}, {-0.0f}}) {
    Extent extent;
    extent.add(data);
    EXPECT_FALSE(std::signbit(extent.low));
    EXPECT_FALSE(std::signbit(extent.high));
  }
}

TEST(FirstNotFinite, FindsNanAndInfinityAnywhere) {
  for (std::size_t at : {0u, 1u, 1023u, 1024u, 2999u}) {
    for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      std::vector<float> data(3000, std::numeric_limits<float>::max());
      data[at] = bad;
      EXPECT_EQ(first_not_finite(data), at);
    }
  }
  EXPECT_EQ(first_not_finite(std::vector<float>(3000, std::numeric_limits<float>::denorm_min())), 3000u);
}

TEST(Histogram, CountsWhereElementsLie) {
  Histogram histogram(-1.0f, 1.0f);  // bins of 1/1024
  const std::vector<float> data{-1.0f, -0.9999f, 1.0f, 0.0f, -0.0f, 0.0005f, -0.0005f, 0.5f, 7.0f, -7.0f};
  histogram.add(data);
  EXPECT_EQ(histogram.count(0), 3u);     // -1, -0.9999, and -7 at the edge
  EXPECT_EQ(histogram.count(2047), 2u);  // 1, and 7 at the edge
  EXPECT_EQ(histogram.zeros(), 2u);
  EXPECT_EQ(histogram.count(1024), 1u);  // 0.0005
  EXPECT_EQ(histogram.count(1023), 1u);  // -0.0005
  EXPECT_EQ(histogram.count(1536), 1u);  // 0.5 is the lower edge of bin 1536
  EXPECT_EQ(histogram.total(), data.size());
}

TEST(Histogram, LongDataCountsLikeShortData) {
  Random random(11, "histogram");
  std::vector<float> data(50001);
  for (float& value : data) value = std::max(0.0f, static_cast<float>(random.normal()));
  Histogram whole(0.0f, 5.0f), pieces(0.0f, 5.0f);
  whole.add(data);  // by stripes
  for (std::size_t at = 0; at < data.size(); at += 100)
    pieces.add(std::span(data).subspan(at, std::min<std::size_t>(100, data.size() - at)));
  EXPECT_EQ(whole.zeros(), pieces.zeros());
  for (std::size_t bin = 0; bin < Histogram::kBins; ++bin) ASSERT_EQ(whole.count(bin), pieces.count(bin)) << bin;
  EXPECT_EQ(whole.total(), data.size());
}

TEST(Histogram, HoldsRangesPastFloatArithmetic) {
  const float most = std::numeric_limits<float>::max();
  Histogram wide(-most, most);  // most - -most is no float
  wide.add(std::vector<float>{-most, most, 1.0f});
  EXPECT_EQ(wide.count(0), 1u);
  EXPECT_EQ(wide.count(2047), 1u);
  EXPECT_EQ(wide.count(1024), 1u);
  const float least = std::numeric_limits<float>::denorm_min();
  Histogram narrow(least, 2 * least);
  narrow.add(std::vector<float>{least, 2 * least});
  EXPECT_EQ(narrow.count(0), 1u);
  EXPECT_EQ(narrow.count(2047), 1u);
}

TEST(Histogram, IsQuick) {
  Random random(12, "speed");
  std::vector<float> data(1 << 20);
  for (float& value : data) value = std::max(0.0f, static_cast<float>(random.normal()));
  Extent extent;
  Histogram histogram(0.0f, 5.0f);
  double extent_ns = 1e9, histogram_ns = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    extent.add(data);
    const auto middle = std::chrono::steady_clock::now();
    histogram.add(data);
    const auto end = std::chrono::steady_clock::now();
    const double n = static_cast<double>(data.size());
    extent_ns = std::min(extent_ns, std::chrono::duration<double, std::nano>(middle - start).count() / n);
    histogram_ns = std::min(histogram_ns, std::chrono::duration<double, std::nano>(end - middle).count() / n);
  }
  std::printf("extent %.2f ns, histogram %.2f ns an element\n", extent_ns, histogram_ns);
  // About 0.1 and 1 ns where this was written; the limits leave room for sanitizers and busy machines.
  EXPECT_LT(extent_ns, 20);
  EXPECT_LT(histogram_ns, 60);
}

}  // namespace
}  // namespace ctk::calibrate
