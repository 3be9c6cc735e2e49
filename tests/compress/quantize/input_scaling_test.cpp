#include "compress/quantize/input_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/hessian.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

struct Data {
  std::vector<float> weights, inputs;
};

Data random_data(std::size_t rows, std::size_t columns, std::size_t samples, double correlation, std::uint64_t seed) {
  Random random(seed, "data");
  Data data;
  for (std::size_t i = 0; i < rows * columns; ++i) data.weights.push_back(static_cast<float>(random.normal()));
  for (std::size_t t = 0; t < samples; ++t) {
    const double common = random.normal();
    for (std::size_t c = 0; c < columns; ++c) {
      data.inputs.push_back(
          static_cast<float>(std::sqrt(correlation) * common + std::sqrt(1 - correlation) * random.normal()));
    }
  }
  return data;
}

std::vector<float> moment_of(const std::vector<float>& inputs, std::size_t columns) {
  calibrate::Moment moment(columns);
  EXPECT_TRUE(moment.add(inputs));
  const auto h = moment.finish();
  return {h.begin(), h.end()};
}

AwqOutcome search(const std::vector<float>& weights, std::size_t columns, const std::vector<float>& hessian,
                  const AwqOptions& options) {
  const std::span<const float> layer = weights;
  auto outcome = search_awq_factors({&layer, 1}, columns, hessian, options);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return std::move(*outcome);
}

TEST(SmoothQuant, BalancesInputsAndWeights) {
  // sqrt(16 / 4) = 2: inputs then reach 8, weights 8. With strength 1 all goes into the weights.
  const std::vector<float> inputs{16}, weights{4};
  EXPECT_FLOAT_EQ((*smoothquant_factors(inputs, weights, 0.5))[0], 2.0f);
  EXPECT_FLOAT_EQ((*smoothquant_factors(inputs, weights, 1.0))[0], 16.0f);
  EXPECT_FLOAT_EQ((*smoothquant_factors(inputs, weights, 0.0))[0], 0.25f);
}

TEST(SmoothQuant, LeavesFeaturesOfZerosAlone) {
  // B043: a column of zeros in the inputs, in the weights, in both.
  const std::vector<float> inputs{0, 3, 0, 2, 1e-45f, 3e38f}, weights{1, 0, 0, 2, 3e38f, 1e-45f};
  const auto factors = smoothquant_factors(inputs, weights, 0.5);
  ASSERT_TRUE(factors);
  EXPECT_EQ(std::vector<float>(factors->begin(), factors->begin() + 4), (std::vector<float>{1, 1, 1, 1}));
  for (float s : *factors) EXPECT_TRUE(std::isfinite(s) && s > 0);
}

TEST(SmoothQuant, RefusesWhatIsNoMagnitude) {
  const std::vector<float> two{1, 2}, one{1}, nan{1, NAN};
  EXPECT_FALSE(smoothquant_factors(two, one, 0.5));
  const auto refused = smoothquant_factors(two, nan, 0.5);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("magnitudes of weights"), std::string::npos);
}

TEST(Awq, HalvesTheErrorWhereFeaturesAreCorrelatedAndOneIsLarge) {
  // B039: 32 -> 16, 512 samples, correlation 0.9, one feature times 20.
  Data data = random_data(16, 32, 512, 0.9, test::test_seed());
  for (std::size_t t = 0; t < 512; ++t) data.inputs[t * 32 + 5] *= 20;
  const std::vector<float> hessian = moment_of(data.inputs, 32);
  AwqOptions options;
  options.form.group_size = 32;
  options.fit = GridFit::extremes;
  const AwqOutcome outcome = search(data.weights, 32, hessian, options);
  std::printf("%.3f of rounding, exponent %.2f\n", outcome.error / outcome.error_unscaled, outcome.exponent);
  EXPECT_LE(outcome.error, 0.5 * outcome.error_unscaled);
  EXPECT_GT(outcome.exponent, 0);
  // The error is that of the samples themselves.
  std::vector<float> scaled = data.weights;
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= outcome.factors[i % 32];
  const Grids grids = fit_grids(scaled, 16, 32, options.form, options.fit, {});
  const auto back = dequantize(round_to_grids(scaled, 16, 32, options.form, grids), 16, 32, options.form, grids);
  double error = 0;
  for (std::size_t t = 0; t < 512; ++t) {
    for (std::size_t r = 0; r < 16; ++r) {
      double miss = 0;
      for (std::size_t c = 0; c < 32; ++c) {
        const std::size_t at = r * 32 + c;
        miss += (static_cast<double>(data.weights[at]) - static_cast<double>(back[at]) / outcome.factors[c]) *
                data.inputs[t * 32 + c];
      }
      error += miss * miss;
    }
  }
  EXPECT_NEAR(outcome.error / error, 1, 1e-3);
}

TEST(Awq, LeavesFeaturesOfZerosAloneAndNeverLosesToNoScaling) {
  // B043: 16 -> 8, 4 bits; feature 5 zero in the inputs, in the weights, in both.
  for (int which = 1; which <= 3; ++which) {
    Data data = random_data(8, 16, 100, 0.3, test::test_seed());
    for (std::size_t t = 0; t < 100 && (which & 1) != 0; ++t) data.inputs[t * 16 + 5] = 0;
    for (std::size_t r = 0; r < 8 && (which & 2) != 0; ++r) data.weights[r * 16 + 5] = 0;
    for (GridFit fit : {GridFit::extremes, GridFit::squared_error}) {
      AwqOptions options;
      options.fit = fit;
      const AwqOutcome outcome = search(data.weights, 16, moment_of(data.inputs, 16), options);
      EXPECT_EQ(outcome.factors[5], 1.0f);
      for (float s : outcome.factors) EXPECT_TRUE(std::isfinite(s) && s > 0);
      EXPECT_LE(outcome.error, outcome.error_unscaled);
      EXPECT_GT(outcome.error_unscaled, 0.0);
    }
  }
}

TEST(Awq, TakesLayersThatShareAnInputTogether) {
  const Data a = random_data(8, 16, 200, 0.5, 1), b = random_data(4, 16, 1, 0, 2);
  std::vector<float> both = a.weights;
  both.insert(both.end(), b.weights.begin(), b.weights.end());
  const std::vector<float> hessian = moment_of(a.inputs, 16);
  const std::span<const float> layers[] = {a.weights, b.weights};
  const auto apart = search_awq_factors(layers, 16, hessian, {});
  ASSERT_TRUE(apart);
  const AwqOutcome together = search(both, 16, hessian, {});
  EXPECT_EQ(apart->factors, together.factors);
  EXPECT_NEAR(apart->error / together.error, 1, 1e-9);
}

TEST(Awq, RefusesWhatDoesNotFit) {
  const Data data = random_data(2, 4, 10, 0, 1);
  const std::span<const float> layer = data.weights;
  EXPECT_FALSE(search_awq_factors({&layer, 1}, 4, std::vector<float>(9), {}));
  EXPECT_FALSE(search_awq_factors({&layer, 1}, 4, std::vector<float>(16, NAN), {}));
  const std::span<const float> part = layer.first(7);
  EXPECT_FALSE(search_awq_factors({&part, 1}, 4, std::vector<float>(16), {}));
}

}  // namespace
}  // namespace ctk::quantization
