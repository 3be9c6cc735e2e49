#include "compress/quantize/coordinate_descent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/quantize/grid_fit.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

// Correlated: A A^T of random A with a common part, and something of each column's own.
std::vector<float> random_hessian(std::size_t columns, Random& random) {
  const std::size_t samples = 40;
  std::vector<double> a(columns * samples);
  for (double& v : a) v = random.normal() + 0.5;
  std::vector<float> h(columns * columns);
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = i == j ? 10.0 : 0.0;
      for (std::size_t t = 0; t < samples; ++t) sum += a[i * samples + t] * a[j * samples + t];
      h[i * columns + j] = h[j * columns + i] = static_cast<float>(sum);
    }
  }
  return h;
}

// e H e^T of one row, in double.
double error_of(const float* weights, const std::vector<float>& h, std::size_t columns, const GridForm& form,
                const std::int8_t* codes, const Grids& grids) {
  std::vector<double> e(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    const Grid grid = grids.at(c / form.group_length(columns));
    e[c] = static_cast<double>(weights[c]) - static_cast<double>(form.code_value(codes[c]) - grid.zero) * grid.scale;
  }
  double error = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j < columns; ++j) error += e[i] * e[j] * static_cast<double>(h[i * columns + j]);
  }
  return error;
}

TEST(CoordinateDescent, EndsWhereNoSingleCodeCanDoBetter) {
  Random random(test::test_seed(), "tiny");
  std::size_t best_of_all = 0, trials = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t columns = 2 + random.below(3);
    const GridForm form{2, round % 2 == 1, 0, false};
    const std::vector<float> h = random_hessian(columns, random);
    std::vector<float> weights(columns);
    for (float& w : weights) w = static_cast<float>(random.normal());
    Grids grids = fit_grids(weights, 1, columns, form, GridFit::squared_error, {});
    std::vector<std::int8_t> codes = round_to_grids(weights, 1, columns, form, grids);
    const double before = error_of(weights.data(), h, columns, form, codes.data(), grids);
    const CoordinateDescent descent(h, columns, form);
    int sweeps = 0;
    while (descent.sweep(weights, 1, codes, grids, {false, false}) != 0) ASSERT_LT(++sweeps, 50);
    const double after = error_of(weights.data(), h, columns, form, codes.data(), grids);
    ASSERT_LE(after, before * (1 + 1e-6));
    double least = after;
    std::vector<std::int8_t> other(columns);
    for (std::size_t number = 0; number < (std::size_t{1} << (2 * columns)); ++number) {
      int changes = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        other[c] = static_cast<std::int8_t>(form.lowest_code() + static_cast<int>(number >> (2 * c) & 3));
        changes += other[c] != codes[c];
      }
      const double error = error_of(weights.data(), h, columns, form, other.data(), grids);
      if (changes == 1) {
        ASSERT_GE(error, after * (1 - 1e-5)) << round;
      }
      least = std::min(least, error);
    }
    ++trials;
    best_of_all += after <= least * (1 + 1e-5);
  }
  std::printf("%zu of %zu ended at the best of all codes\n", best_of_all, trials);
  EXPECT_GT(2 * best_of_all, trials);
}

TEST(CoordinateDescent, ScaleRefitIsTheLeastSquaresStep) {
  // One column, code 3, target 6.5, any H: the best scale is 6.5 / 3. H = 2.
  const std::vector<float> h{2.0f}, target{6.5f};
  const GridForm form{3, false, 0, false};
  std::vector<std::int8_t> codes{3};
  Grids grids{{2.0f}, {}};
  CoordinateDescent(h, 1, form).sweep(target, 1, codes, grids, {true, false});
  EXPECT_EQ(codes[0], 3);
  EXPECT_FLOAT_EQ(grids.scales[0], 6.5f / 3);
}

TEST(CoordinateDescent, NeverRaisesTheErrorWhateverTheGroups) {
  Random random(test::test_seed(), "groups");
  for (const auto& [columns, group] :
       {std::pair<std::size_t, std::size_t>{40, 16}, {300, 32}, {300, 200}, {700, 0}, {1100, 600}}) {
    for (bool is_affine : {false, true}) {
      const GridForm form{4, is_affine, group, true};
      const std::vector<float> h = random_hessian(columns, random);
      std::vector<float> weights(2 * columns);
      for (float& w : weights) w = static_cast<float>(random.normal());
      Grids grids = fit_grids(weights, 2, columns, form, GridFit::squared_error, {});
      std::vector<std::int8_t> codes = round_to_grids(weights, 2, columns, form, grids);
      const CoordinateDescent descent(h, columns, form);
      const auto total = [&] {
        std::vector<float> errors = dequantize(codes, 2, columns, form, grids);
        for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = weights[i] - errors[i];
        return output_error(errors, 2, h, columns);
      };
      const double start = total();
      double last = start;
      for (int sweep = 0; sweep < 6; ++sweep) {
        descent.sweep(weights, 2, codes, grids, {sweep % 2 == 1, sweep == 5});
        const double now = total();
        EXPECT_LE(now, last * (1 + 1e-4)) << columns << " g" << group << " sweep " << sweep;
        if (sweep == 1) {
          EXPECT_LT(now, last) << columns << " g" << group;
        }
        last = now;
      }
      EXPECT_LT(last, 0.7 * start) << columns << " g" << group;
    }
  }
}

TEST(OutputError, IsTheQuadraticForm) {
  // [1 2] [3 1; 1 2] [1 2]^T = 3 + 2 + 2 + 8 = 15.
  EXPECT_EQ(output_error(std::vector<float>{1, 2}, 1, std::vector<float>{3, 1, 1, 2}, 2), 15.0);
}

}  // namespace
}  // namespace ctk::quantization
