#include "compress/quantize/grid_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "core/dtype.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

GridForm form_of(int bits, bool is_affine, std::size_t group_size = 0, bool has_half_scales = false) {
  return {bits, is_affine, group_size, has_half_scales};
}

double error_on(std::span<const float> values, std::span<const float> importance, const GridForm& form, Grid grid) {
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double code = std::clamp(std::nearbyint(static_cast<double>(values[i]) / grid.scale) + grid.zero,
                                   static_cast<double>(form.lowest_code()), static_cast<double>(form.highest_code()));
    const double miss = values[i] - (code - grid.zero) * grid.scale;
    error += (importance.empty() ? 1.0 : importance[i]) * miss * miss;
  }
  return error;
}

// The best of a fine grid of scales of both signs and all zero points.
double least_error(std::span<const float> values, std::span<const float> importance, const GridForm& form) {
  double largest = 0, best = INFINITY;
  for (float v : values) largest = std::max(largest, static_cast<double>(std::abs(v)));
  for (int zero = 0; zero <= (form.is_affine ? form.highest_code() : 0); ++zero) {
    for (int i = 1; i <= 1500; ++i) {
      for (double sign : {1.0, -1.0}) {
        const auto scale = static_cast<float>(sign * largest * i / 1000.0);
        best = std::min(best, error_on(values, importance, form, {scale, zero}));
      }
    }
  }
  return best;
}

std::vector<float> random_values(Random& random, std::size_t count, double shift = 0) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random.normal() + shift);
  return values;
}

TEST(GridForm, CountsCodesAndGroups) {
  EXPECT_EQ(form_of(4, false).lowest_code(), -8);
  EXPECT_EQ(form_of(4, false).highest_code(), 7);
  EXPECT_EQ(form_of(2, true).lowest_code(), 0);
  EXPECT_EQ(form_of(8, true).highest_code(), 255);
  EXPECT_EQ(form_of(8, true).code_value(static_cast<std::int8_t>(-1)), 255);
  EXPECT_EQ(form_of(8, false).code_value(static_cast<std::int8_t>(-1)), -1);
  EXPECT_EQ(form_of(4, false, 32).groups(100), 4u);  // the last holds 4
  EXPECT_EQ(form_of(4, false, 0).groups(100), 1u);
  EXPECT_EQ(form_of(4, false, 128).groups(100), 1u);
}

TEST(GridOfExtremes, PutsTheLargestOnTheLastCode) {
  const std::vector<float> values{-3.5f, 1.0f, 2.0f};
  EXPECT_EQ(grid_of_extremes(values, form_of(4, false)).scale, 0.5f);  // 3.5 / 7
  const Grid affine = grid_of_extremes(values, form_of(2, true));
  EXPECT_FLOAT_EQ(affine.scale, 5.5f / 3);  // from -3.5 to 2 in three steps
  EXPECT_EQ(affine.zero, 2);                // 3.5 / 1.8333 = 1.909
  const Grid positive = grid_of_extremes(std::vector<float>{1.0f, 3.0f}, form_of(2, true));
  EXPECT_EQ(positive.zero, 0);  // 0 must have a code
  EXPECT_EQ(positive.scale, 1.0f);
}

TEST(GridFit, GivesTheLargestWeightTheExtraCode) {
  // 8 codes on one side, 7 on the other: with scale -0.5 the 4.0 gets code -8 and nothing is lost.
  std::vector<float> values;
  for (int i = -7; i <= 8; ++i) values.push_back(0.5f * static_cast<float>(i));
  const Grid grid = fit_grid(values, {}, form_of(4, false));
  EXPECT_FLOAT_EQ(grid.scale, -0.5f);
  EXPECT_LT(error_on(values, {}, form_of(4, false), grid), 1e-10);
}

TEST(GridFit, FindsTheGridThatWeightsAlreadyLieOn) {
  Random random(test::test_seed(), "grid");
  for (int bits = 2; bits <= 8; ++bits) {
    for (bool is_affine : {false, true}) {
      const GridForm form = form_of(bits, is_affine);
      const int zero = is_affine ? static_cast<int>(random.below(1u << bits)) : 0;
      std::vector<float> values;
      for (int code = form.lowest_code(); code <= form.highest_code(); ++code)
        values.push_back(0.375f * static_cast<float>(code - zero));
      const Grid grid = fit_grid(values, {}, form);
      EXPECT_LT(error_on(values, {}, form, grid), 1e-9 * static_cast<double>(values.size())) << bits << is_affine;
    }
  }
}

TEST(GridFit, IsNearTheBestOfAFineSearch) {
  Random random(test::test_seed(), "search");
  for (int bits : {2, 3, 4}) {
    for (bool is_affine : {false, true}) {
      const GridForm form = form_of(bits, is_affine);
      double found = 0, best = 0, plain = 0;
      for (int round = 0; round < 12; ++round) {
        const std::vector<float> values = random_values(random, 32, is_affine ? 0.5 : 0.0);
        std::vector<float> importance;
        if (round % 2 == 1) {
          for (int i = 0; i < 32; ++i) importance.push_back(static_cast<float>(std::exp(random.normal())));
        }
        const double error = error_on(values, importance, form, fit_grid(values, importance, form));
        const double extremes = error_on(values, importance, form, grid_of_extremes(values, form));
        ASSERT_LE(error, extremes * (1 + 1e-5)) << bits << is_affine;
        found += error;
        best += least_error(values, importance, form);
        plain += extremes;
      }
      std::printf("%d bits %s: extremes %.3f, fitted %.3f of the best\n", bits, is_affine ? "affine" : "symmetric",
                  plain / best, found / best);
      EXPECT_LT(found / best, 1.03);
    }
  }
}

TEST(GridFit, KeepsHalfScalesAndSurvivesHardGroups) {
  const float huge = 3e38f, tiny = 1e-38f;
  const std::vector<std::vector<float>> groups{{0, 0, 0},    {5},      {-5},         {huge, -huge, 1}, {tiny, -tiny},
                                               {2, 2, 2, 2}, {1e-45f}, {1, 1000000}, {-0.0f, 0.0f}};
  for (int bits : {2, 4, 8}) {
    for (bool is_affine : {false, true}) {
      for (bool half : {false, true}) {
        const GridForm form = form_of(bits, is_affine, 0, half);
        for (const auto& values : groups) {
          const Grid grid = fit_grid(values, {}, form);
          ASSERT_TRUE(std::isfinite(grid.scale) && grid.scale != 0) << values[0];
          ASSERT_TRUE(grid.zero >= 0 && grid.zero <= (is_affine ? form.highest_code() : 0));
          if (half) {
            ASSERT_EQ(half_to_float(float_to_half(grid.scale)), grid.scale);
          }
          for (std::int8_t code :
               round_to_grids(values, 1, values.size(), form, {{grid.scale}, {static_cast<std::uint8_t>(grid.zero)}}))
            ASSERT_TRUE(form.code_value(code) >= form.lowest_code() && form.code_value(code) <= form.highest_code());
        }
      }
    }
  }
  const std::vector<float> constant{2, 2, 2, 2};
  const Grid grid = fit_grid(constant, {}, form_of(4, false));
  EXPECT_NEAR(error_on(constant, {}, form_of(4, false), grid), 0, 1e-10);
}

TEST(GridFit, ImportanceOfZeroEverywhereCountsAsOne) {
  Random random(1);
  const std::vector<float> values = random_values(random, 32), none(32, 0.0f);
  EXPECT_EQ(fit_grid(values, none, form_of(4, false)).scale, fit_grid(values, {}, form_of(4, false)).scale);
}

TEST(FitGrids, HandlesAShortLastGroupAndGoesBackAndForth) {
  Random random(test::test_seed(), "matrix");
  const std::size_t rows = 9, columns = 100;
  const std::vector<float> weights = random_values(random, rows * columns);
  for (bool is_affine : {false, true}) {
    const GridForm form = form_of(8, is_affine, 32, true);
    for (GridFit fit : {GridFit::extremes, GridFit::squared_error}) {
      const Grids grids = fit_grids(weights, rows, columns, form, fit, {});
      ASSERT_EQ(grids.scales.size(), rows * 4);
      const auto codes = round_to_grids(weights, rows, columns, form, grids);
      const auto back = dequantize(codes, rows, columns, form, grids);
      for (std::size_t i = 0; i < back.size(); ++i) {
        // Half a step; a clipped end may miss by a whole one, 8 bits of some +-3.
        ASSERT_NEAR(back[i], weights[i], 1.1f * std::abs(grids.scales[i / columns * 4 + i % columns / 32])) << i;
      }
    }
  }
}

TEST(FitGrids, HasTheSameBitsForAnyThreads) {
  Random random(3);
  const std::vector<float> weights = random_values(random, 50 * 77);
  const GridForm form = form_of(4, true, 16);
  const Grids one = fit_grids(weights, 50, 77, form, GridFit::squared_error, {});
  set_threads(3);
  const Grids three = fit_grids(weights, 50, 77, form, GridFit::squared_error, {});
  set_threads(1);
  EXPECT_EQ(one.scales, three.scales);
  EXPECT_EQ(one.zeros, three.zeros);
}

TEST(RoundToGrids, RoundsTiesToEvenAndClamps) {
  const std::vector<float> weights{0.5f, 1.5f, 2.5f, -0.5f, -9.0f, 500.0f, 3e38f, -3e38f};
  const auto codes = round_to_grids(weights, 1, 8, form_of(4, false), {{1.0f}, {}});
  EXPECT_EQ(codes, (std::vector<std::int8_t>{0, 2, 2, 0, -8, 7, 7, -8}));
  const auto affine = round_to_grids(weights, 1, 8, form_of(4, true), {{1.0f}, {3}});
  EXPECT_EQ(affine, (std::vector<std::int8_t>{3, 5, 5, 3, 0, 15, 15, 0}));
}

TEST(FitGrids, IsQuick) {
  Random random(4);
  const std::size_t rows = 128, columns = 4096;
  const std::vector<float> weights = random_values(random, rows * columns), importance(columns, 1.0f);
  const auto rate = [&](auto&& work) {  // GB of float weights a second, of processor time
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const std::clock_t start = std::clock();
      work();
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return 4e-9 * static_cast<double>(rows * columns) / best;
  };
  for (bool is_affine : {false, true}) {
    const GridForm form = form_of(4, is_affine, 128, true);
    Grids grids;
    const double plain = rate([&] {
      grids = fit_grids(weights, rows, columns, form, GridFit::extremes, {});
      round_to_grids(weights, rows, columns, form, grids);
    });
    const double fitted = rate([&] { fit_grids(weights, rows, columns, form, GridFit::squared_error, {}); });
    const double weighted = rate([&] { fit_grids(weights, rows, columns, form, GridFit::squared_error, importance); });
    std::printf("%s: rounding %.2f, fit %.2f, weighted fit %.2f GB/s a thread\n", is_affine ? "affine" : "symmetric",
                plain, fitted, weighted);
    EXPECT_GT(plain, 0.1);
    EXPECT_GT(fitted, 0.01);
  }
}

}  // namespace
}  // namespace ctk::quantization
