#include "compress/quantize/triangular.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

// R R^T / size + 0.05 I of random R.
std::vector<float> positive_matrix(std::size_t size, std::uint64_t seed) {
  Random random(seed, "positive");
  std::vector<float> r(size * size), a(size * size);
  for (float& v : r) v = static_cast<float>(random.normal());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      double sum = i == j ? 0.05 : 0.0;
      for (std::size_t k = 0; k < size; ++k)
        sum += static_cast<double>(r[i * size + k]) * static_cast<double>(r[j * size + k]) / static_cast<double>(size);
      a[i * size + j] = static_cast<float>(sum);
    }
  }
  return a;
}

TEST(FactorCholesky, GivesTheHandWorkedFactor) {
  // [4 2; 2 5] = [2 0; 1 2] [2 1; 0 2]. What stands above the diagonal is not read.
  std::vector<float> a{4, 99, 2, 5};
  ASSERT_TRUE(factor_cholesky(a, 2));
  EXPECT_EQ(a, (std::vector<float>{2, 0, 1, 2}));
}

TEST(FactorCholesky, RefusesWhatIsNotPositiveDefinite) {
  std::vector<float> singular{1, 1, 1, 1}, negative{-1}, nan{NAN}, zero{0};
  EXPECT_FALSE(factor_cholesky(singular, 2));
  EXPECT_FALSE(factor_cholesky(negative, 1));
  EXPECT_FALSE(factor_cholesky(nan, 1));
  EXPECT_FALSE(factor_cholesky(zero, 1));
}

TEST(FactorCholesky, MultipliesBackAcrossBlocks) {
  for (std::size_t size : {1u, 95u, 96u, 97u, 250u}) {
    const std::vector<float> a = positive_matrix(size, test::test_seed());
    std::vector<float> l = a;
    ASSERT_TRUE(factor_cholesky(l, size));
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < size; ++k) sum += static_cast<double>(l[i * size + k]) * l[j * size + k];
        ASSERT_NEAR(sum, a[i * size + j], 2e-5) << size;  // some hundred roundings of sums of size 1
        if (j > i) {
          ASSERT_EQ(l[i * size + j], 0.0f);
        }
      }
    }
  }
}

TEST(SolveCholesky, UndoesTheProduct) {
  for (std::size_t size : {1u, 96u, 200u}) {
    const std::size_t rows = 53;
    const std::vector<float> a = positive_matrix(size, test::test_seed());
    std::vector<float> l = a, x(rows * size), y(rows * size);
    ASSERT_TRUE(factor_cholesky(l, size));
    Random random(7);
    for (float& v : x) v = static_cast<float>(random.normal());
    multiply_transposed(x, rows, a, size, size, y);  // a is symmetric
    solve_cholesky(l, size, y, rows);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], x[i], 2e-3) << size;  // condition up to some 80
  }
}

TEST(Triangular, HasTheSameBitsForAnyThreads) {
  const std::size_t size = 300, rows = 131;
  const std::vector<float> a = positive_matrix(size, 5);
  std::vector<float> first_l, first_x;
  for (int team : {1, 2, 3}) {
    set_threads(team);
    std::vector<float> l = a, x(a.begin(), a.begin() + rows * size);
    ASSERT_TRUE(factor_cholesky(l, size));
    solve_cholesky(l, size, x, rows);
    if (team == 1) {
      first_l = l, first_x = x;
    }
    EXPECT_EQ(l, first_l);
    EXPECT_EQ(x, first_x);
  }
  set_threads(1);
}

}  // namespace
}  // namespace ctk::quantization
