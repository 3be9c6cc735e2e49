#include "calibrate/hessian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/seed.h"
#include "tests/support/thread_ranks.h"

namespace ctk::calibrate {
namespace {

std::vector<float> random_rows(std::size_t count, std::uint64_t seed) {
  Random random(seed, "rows");
  std::vector<float> rows(count);
  for (float& v : rows) v = static_cast<float>(random.normal());
  return rows;
}

TEST(Moment, SumsProductsOfRows) {
  // [1 2] and [3 -1]: 1+9 = 10, 2-3 = -1, 4+1 = 5.
  Moment moment(2);
  ASSERT_TRUE(moment.add(std::vector<float>{1, 2, 3, -1}));
  const auto h = moment.finish();
  EXPECT_EQ(std::vector<float>(h.begin(), h.end()), (std::vector<float>{10, -1, -1, 5}));
  EXPECT_EQ(moment.rows(), 2u);
}

TEST(Moment, TakesRowsAfterItWasRead) {
  Moment moment(2);
  ASSERT_TRUE(moment.add(std::vector<float>{1, 2}));
  moment.finish();
  ASSERT_TRUE(moment.add(std::vector<float>{3, -1}));
  const auto h = moment.finish();
  EXPECT_EQ(std::vector<float>(h.begin(), h.end()), (std::vector<float>{10, -1, -1, 5}));
}

TEST(Moment, OfNoRowsIsZero) {
  Moment moment(3);
  for (float v : moment.finish()) EXPECT_EQ(v, 0.0f);
  EXPECT_EQ(moment.rows(), 0u);
}

TEST(Moment, IsTheSumInDoubleAndSymmetric) {
  const std::uint64_t seed = test::test_seed();
  for (std::size_t columns : {1u, 17u, 191u, 193u, 400u}) {
    const std::size_t count = 800;  // two chunks and a part
    const std::vector<float> rows = random_rows(count * columns, seed + columns);
    Moment moment(columns);
    ASSERT_TRUE(moment.add(rows));
    const auto h = moment.finish();
    for (std::size_t i = 0; i < columns; i += 7) {
      for (std::size_t j = 0; j < columns; j += 3) {
        double sum = 0;
        for (std::size_t t = 0; t < count; ++t)
          sum += static_cast<double>(rows[t * columns + i]) * static_cast<double>(rows[t * columns + j]);
        // Sums of some 800 products of size 1: sqrt(800) * 384 roundings of half an epsilon each at the very most.
        ASSERT_NEAR(h[i * columns + j], sum, 2e-3) << columns << " at " << i << ", " << j;
        ASSERT_EQ(h[i * columns + j], h[j * columns + i]);
      }
    }
  }
}

TEST(Moment, HasTheSameBitsForAnyPiecesAndThreads) {
  const std::size_t columns = 200, count = 1000;
  const std::vector<float> rows = random_rows(count * columns, test::test_seed());
  Moment whole(columns);
  ASSERT_TRUE(whole.add(rows));
  const auto expected = whole.finish();
  for (int team : {1, 2, 3}) {
    set_threads(team);
    Moment pieces(columns);
    for (std::size_t at = 0; at < count;) {
      const std::size_t take = std::min<std::size_t>(count - at, at % 5 * 100 + 1);
      ASSERT_TRUE(pieces.add(std::span(rows).subspan(at * columns, take * columns)));
      at += take;
    }
    const auto h = pieces.finish();
    EXPECT_TRUE(std::equal(h.begin(), h.end(), expected.begin())) << team;
  }
  set_threads(1);
}

TEST(Moment, NamesRowAndColumnOfWhatIsNotFinite) {
  Moment moment(2);
  ASSERT_TRUE(moment.add(std::vector<float>{1, 2}));
  const Status nan = moment.add(std::vector<float>{1, 2, 3, NAN});
  ASSERT_FALSE(nan);
  EXPECT_NE(nan.error().message.find("row \"2\", column \"1\""), std::string::npos) << nan.error().message;
  EXPECT_FALSE(moment.add(std::vector<float>{1, 2, 3}));
  EXPECT_EQ(moment.rows(), 1u);
  EXPECT_EQ(moment.finish()[3], 4.0f);  // the refused pieces left nothing behind
}

TEST(CrossMoment, PairsRowsOfTwoInputs) {
  // x = [1 2], [3 -1]; y = [5 0], [1 1]: x_0 y = 5+3, 0+3; x_1 y = 10-1, 0-1.
  CrossMoment moment(2);
  ASSERT_TRUE(moment.add(std::vector<float>{1, 2, 3, -1}, std::vector<float>{5, 0, 1, 1}));
  const auto c = moment.finish();
  EXPECT_EQ(std::vector<float>(c.begin(), c.end()), (std::vector<float>{8, 3, 9, -1}));
  EXPECT_FALSE(moment.add(std::vector<float>{1, 2}, std::vector<float>{1, 2, 3, 4}));
}

TEST(CrossMoment, OfAnInputWithItselfIsTheMoment) {
  const std::vector<float> rows = random_rows(500 * 205, test::test_seed());
  Moment moment(205);
  CrossMoment cross(205);
  ASSERT_TRUE(moment.add(rows));
  ASSERT_TRUE(cross.add(rows, rows));
  const auto h = moment.finish(), c = cross.finish();
  EXPECT_TRUE(std::equal(h.begin(), h.end(), c.begin()));
}

TEST(Moment, CostsHalfAProduct) {
  const std::size_t columns = 768, count = 1536;
  const std::vector<float> rows = random_rows(count * columns, 3);
  double moment_s = 1e9, cross_s = 1e9;
  for (int round = 0; round < 3; ++round) {
    Moment moment(columns);
    CrossMoment cross(columns);
    const std::clock_t start = std::clock();  // of the processor: other processes do not count
    ASSERT_TRUE(moment.add(rows));
    const std::clock_t middle = std::clock();
    ASSERT_TRUE(cross.add(rows, rows));
    const std::clock_t end = std::clock();
    moment_s = std::min(moment_s, static_cast<double>(middle - start) / CLOCKS_PER_SEC);
    cross_s = std::min(cross_s, static_cast<double>(end - middle) / CLOCKS_PER_SEC);
  }
  const double flops = 2.0 * static_cast<double>(columns * columns * count);
  std::printf("moment %.1f, cross moment %.1f GFLOP/s of a whole product\n", flops / moment_s * 1e-9,
              flops / cross_s * 1e-9);
  EXPECT_LT(moment_s, 0.85 * cross_s);  // 10 tiles of 16, and the transpositions
}

// 400 columns are 6 tiles on and below the diagonal, 9 in all: by turns over 4 ranks.
TEST(Moment, TilesOfSeveralRanksAreTheMatrixOfOne) {
  constexpr std::size_t kColumns = 400;
  const std::vector<float> x = random_rows(900 * kColumns, 1), y = random_rows(900 * kColumns, 2);
  using Matrices = std::pair<std::vector<float>, std::vector<float>>;
  const auto sums = [&](Ranks& ranks) {
    Moment moment(kColumns);
    CrossMoment cross(kColumns);
    moment.share(ranks);
    cross.share(ranks);
    EXPECT_TRUE(moment.add(x));
    EXPECT_TRUE(cross.add(x, y));
    EXPECT_TRUE(moment.gather(ranks));
    EXPECT_TRUE(cross.gather(ranks));
    const auto h = moment.finish(), c = cross.finish();
    return Matrices{{h.begin(), h.end()}, {c.begin(), c.end()}};
  };
  const Matrices one = sums(alone());
  EXPECT_NE(one.first[399 * kColumns + 1], 0.0f);
  for (const Matrices& found : test::on_ranks<Matrices>(4, sums)) EXPECT_EQ(found, one);
}

}  // namespace
}  // namespace ctk::calibrate
