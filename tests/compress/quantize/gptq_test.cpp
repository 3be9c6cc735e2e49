#include "compress/quantize/gptq.h"

#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/hessian.h"
#include "compress/quantize/coordinate_descent.h"
#include "core/parallel.h"
#include "core/random.h"
#include "tests/support/seed.h"

namespace ctk::quantization {
namespace {

struct Layer {
  std::size_t rows, columns, samples;
  std::vector<float> weights, inputs, hessian;

  GptqInput input() const {
    GptqInput in;
    in.weights = weights;
    in.rows = rows;
    in.columns = columns;
    in.hessian = hessian;
    in.samples = samples;
    return in;
  }
};

std::vector<float> moment_of(const std::vector<float>& inputs, std::size_t columns) {
  calibrate::Moment moment(columns);
  EXPECT_TRUE(moment.add(inputs));
  const auto h = moment.finish();
  return {h.begin(), h.end()};
}

// Inputs whose features share a common part, so that their correlation is `correlation`.
Layer random_layer(std::size_t rows, std::size_t columns, std::size_t samples, double correlation, std::uint64_t seed) {
  Random random(seed, "layer");
  Layer layer{rows, columns, samples, {}, {}, {}};
  for (std::size_t i = 0; i < rows * columns; ++i) layer.weights.push_back(static_cast<float>(random.normal()));
  for (std::size_t t = 0; t < samples; ++t) {
    const double common = random.normal();
    for (std::size_t c = 0; c < columns; ++c)
      layer.inputs.push_back(
          static_cast<float>(std::sqrt(correlation) * common + std::sqrt(1 - correlation) * random.normal()));
  }
  layer.hessian = moment_of(layer.inputs, columns);
  return layer;
}

// |W x - Q x|^2 over all samples, in double, from the inputs themselves.
double error_of(const Layer& layer, const std::vector<float>& quantized, const std::vector<float>& inputs) {
  double error = 0;
  for (std::size_t t = 0; t < inputs.size() / layer.columns; ++t) {
    for (std::size_t r = 0; r < layer.rows; ++r) {
      double miss = 0;
      for (std::size_t c = 0; c < layer.columns; ++c) {
        const std::size_t at = r * layer.columns + c;
        miss += (static_cast<double>(layer.weights[at]) - static_cast<double>(quantized[at])) *
                static_cast<double>(inputs[t * layer.columns + c]);
      }
      error += miss * miss;
    }
  }
  return error;
}

std::vector<float> weights_of(const Layer& layer, const GptqOutcome& outcome, const GridForm& form) {
  return dequantize(outcome.codes, layer.rows, layer.columns, form, outcome.grids);
}

GptqOptions options_of(int bits, bool is_affine, std::size_t group_size, int sweeps) {
  GptqOptions options;
  options.form = {bits, is_affine, group_size, true};
  options.sweeps = sweeps;
  return options;
}

GptqOutcome run(const GptqInput& input, const GptqOptions& options) {
  auto outcome = quantize_gptq(input, options);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return std::move(*outcome);
}

TEST(Gptq, WithUncorrelatedInputsRoundsToNearest) {
  Layer layer = random_layer(5, 100, 1, 0, test::test_seed());
  layer.hessian.assign(100 * 100, 0.0f);
  for (std::size_t i = 0; i < 100; ++i) layer.hessian[i * 100 + i] = static_cast<float>(1 + i % 7);
  for (bool is_affine : {false, true}) {
    GptqOptions options = options_of(4, is_affine, 32, 0);
    options.weights_fit = false;
    const Grids grids = fit_grids(layer.weights, 5, 100, options.form, GridFit::squared_error, {});
    const GptqOutcome outcome = run(layer.input(), options);
    EXPECT_EQ(outcome.codes, round_to_grids(layer.weights, 5, 100, options.form, grids));
    EXPECT_EQ(outcome.grids.scales, grids.scales);
  }
}

TEST(Gptq, MakesUpForTheFirstColumnInTheSecond) {
  // Two inputs that are almost the same count only by their sum. Scale 1 (0.5 * 2 and -2 are the extremes, 2 bits):
  // w = [0.4, 0.4, -2]: rounding gives 0 + 0, the sum is 0.8; the second column, seeing 0.4 + 0.4, becomes 1.
  Layer layer{1, 3, 1, {0.4f, 0.4f, -2.0f}, {}, {1, 0.999f, 0, 0.999f, 1, 0, 0, 0, 1}};
  GptqOptions options = options_of(2, false, 0, 0);
  options.damping = 0;
  options.fit = GridFit::extremes;  // 2 / 1: scale 2
  options.form.has_half_scales = false;
  const GptqOutcome plain = run(layer.input(), options);
  EXPECT_EQ(plain.grids.scales[0], 2.0f);
  EXPECT_EQ(plain.codes, (std::vector<std::int8_t>{0, 0, -1}));  // 0.8 / 2 = 0.4: still nearer to 0
  layer.weights = {0.8f, 0.8f, -2.0f};
  EXPECT_EQ(run(layer.input(), options).codes, (std::vector<std::int8_t>{0, 1, -1}));  // 1.6 / 2 = 0.8
}

TEST(Gptq, EachPartLowersTheMeanError) {
  const std::uint64_t seed = test::test_seed();
  for (const auto& [bits, is_affine, group] : {std::tuple{4, false, 32}, {4, true, 32}, {3, false, 0}, {2, true, 16}}) {
    double rounding = 0, gptq = 0, descent = 0, refitted = 0, searched = 0;
    for (std::uint64_t round = 0; round < 5; ++round) {
      const Layer layer = random_layer(20, 100, 300, 0.6, seed + round);  // the last group is short
      GptqOptions options = options_of(bits, is_affine, static_cast<std::size_t>(group), 0);
      const GptqOutcome plain = run(layer.input(), options);
      options.sweeps = 3;
      options.sweep_parts = {false, false};
      const GptqOutcome swept = run(layer.input(), options);
      options.sweep_parts = {true, false};
      const GptqOutcome scaled = run(layer.input(), options);
      options.sweep_parts = {true, true};
      const GptqOutcome full = run(layer.input(), options);
      const double direct = error_of(layer, weights_of(layer, full, options.form), layer.inputs);
      EXPECT_NEAR(full.receipt.error / direct, 1.0, 1e-3);  // the receipt tells the truth
      EXPECT_EQ(plain.receipt.error_rounding, full.receipt.error_rounding);
      rounding += plain.receipt.error_rounding;
      gptq += plain.receipt.error;
      descent += swept.receipt.error;
      refitted += scaled.receipt.error;
      searched += full.receipt.error;
    }
    std::printf("%d bits %s g%d: of rounding, GPTQ %.3f, + descent %.3f, + scales %.3f, + groups %.3f\n", bits,
                is_affine ? "affine" : "symmetric", group, gptq / rounding, descent / rounding, refitted / rounding,
                searched / rounding);
    EXPECT_LT(gptq, 0.8 * rounding);
    EXPECT_LT(descent, gptq);
    EXPECT_LT(refitted, descent);
    EXPECT_LT(searched, refitted);
  }
}

TEST(Gptq, HalvesTheErrorWhereFeaturesAreCorrelatedAndOneIsLarge) {
  // B039: statistics that never arrived made GPTQ equal to rounding, and nobody noticed.
  Layer layer = random_layer(16, 32, 512, 0.9, test::test_seed());
  for (std::size_t t = 0; t < layer.samples; ++t) layer.inputs[t * 32 + 5] *= 20;
  layer.hessian = moment_of(layer.inputs, 32);
  for (int sweeps : {0, 4}) {
    const GptqOptions options = options_of(4, false, 32, sweeps);
    const GptqOutcome outcome = run(layer.input(), options);
    const Grids grids = fit_grids(layer.weights, 16, 32, options.form, GridFit::extremes, {});
    const auto rounded = round_to_grids(layer.weights, 16, 32, options.form, grids);
    const double rounding = error_of(layer, dequantize(rounded, 16, 32, options.form, grids), layer.inputs);
    EXPECT_LE(error_of(layer, weights_of(layer, outcome, options.form), layer.inputs), 0.5 * rounding);
    EXPECT_LT(outcome.receipt.error, outcome.receipt.error_rounding);
    EXPECT_NE(outcome.codes, rounded);
    EXPECT_EQ(outcome.receipt.samples, 512u);
    EXPECT_FALSE(outcome.receipt.fell_back);
  }
}

TEST(Gptq, FinishesWithFewSamplesDeadAndTwinFeatures) {
  // B037: 8 -> 4, 2 samples, feature 3 always 0, features 4 and 5 the same.
  double gptq = 0, rounding = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Layer layer = random_layer(4, 8, 2, 0, seed);
    for (std::size_t t = 0; t < 2; ++t) {
      layer.inputs[t * 8 + 3] = 0;
      layer.inputs[t * 8 + 5] = layer.inputs[t * 8 + 4];
    }
    layer.hessian = moment_of(layer.inputs, 8);
    for (double damping : {0.01, 0.0}) {
      GptqOptions options = options_of(4, false, 0, 2);
      options.damping = damping;
      const GptqOutcome outcome = run(layer.input(), options);
      EXPECT_EQ(outcome.receipt.dead_columns, 1u);
      EXPECT_GT(outcome.receipt.damping, 0.0);
      EXPECT_EQ(outcome.receipt.damping_raises > 0, damping == 0.0);
      const std::vector<float> quantized = weights_of(layer, outcome, options.form);
      for (std::size_t r = 0; r < 4; ++r) {
        const float scale = outcome.grids.scales[r], weight = layer.weights[r * 8 + 3];
        const float code = std::clamp(std::nearbyint(weight / scale), -8.0f, 7.0f);
        EXPECT_EQ(quantized[r * 8 + 3], code * scale);  // plain rounding
      }
      if (damping == 0.0) continue;
      gptq += error_of(layer, quantized, layer.inputs);
      const Grids grids = fit_grids(layer.weights, 4, 8, options.form, GridFit::squared_error, {});
      const auto rounded = round_to_grids(layer.weights, 4, 8, options.form, grids);
      rounding += error_of(layer, dequantize(rounded, 4, 8, options.form, grids), layer.inputs);
    }
  }
  EXPECT_LE(gptq, rounding);
}

TEST(Gptq, RoundsALayerThatNoSampleReached) {
  // B040: never scale 0 or random numbers.
  Layer layer = random_layer(3, 40, 1, 0, 4);
  layer.samples = 0;
  for (const std::vector<float>& hessian : {std::vector<float>{}, std::vector<float>(40 * 40, 0.0f)}) {
    layer.hessian = hessian;
    const GptqOptions options = options_of(4, false, 16, 4);
    const GptqOutcome outcome = run(layer.input(), options);
    const Grids grids = fit_grids(layer.weights, 3, 40, options.form, GridFit::squared_error, {});
    EXPECT_EQ(outcome.grids.scales, grids.scales);
    EXPECT_EQ(outcome.codes, round_to_grids(layer.weights, 3, 40, options.form, grids));
    EXPECT_TRUE(outcome.receipt.fell_back);
    EXPECT_EQ(outcome.receipt.samples, 0u);
    EXPECT_EQ(outcome.receipt.dead_columns, 40u);
  }
}

TEST(Gptq, ActivationOrderKeepsGroupsOfNeighbours) {
  // B042: magnitudes rise towards the last column, so the order is the reverse; columns stay where they were, and the
  // output error shows that each was decoded with its own group's scale.
  Layer layer = random_layer(8, 64, 400, 0.5, test::test_seed());
  for (std::size_t i = 0; i < layer.inputs.size(); ++i) layer.inputs[i] *= 1 + static_cast<float>(i % 64) / 8;
  for (std::size_t i = 0; i < layer.weights.size(); ++i) layer.weights[i] *= i % 64 < 32 ? 1.0f : 0.1f;
  layer.hessian = moment_of(layer.inputs, 64);
  const GptqOptions options = options_of(4, false, 32, 0);
  const GptqOutcome outcome = run(layer.input(), options);
  EXPECT_NEAR(outcome.receipt.error / error_of(layer, weights_of(layer, outcome, options.form), layer.inputs), 1, 1e-3);
  EXPECT_LT(outcome.receipt.error, 0.6 * outcome.receipt.error_rounding);
  for (std::size_t r = 0; r < 8; ++r)  // scales belong to columns 0..31 and 32..63
    EXPECT_GT(std::abs(outcome.grids.scales[2 * r]), 4 * std::abs(outcome.grids.scales[2 * r + 1]));
}

TEST(Gptq, FallsBackToRoundingWhereItLosesOnHeldOutSamples) {
  // Few samples of strongly correlated features; the held-out ones are not correlated at all.
  Layer layer = random_layer(8, 32, 40, 0.95, test::test_seed());
  const std::vector<float> other = moment_of(random_layer(8, 32, 2000, 0.0, 9).inputs, 32);
  GptqInput input = layer.input();
  input.held_out_hessian = other;
  GptqOptions options = options_of(3, false, 0, 4);
  options.damping = 1e-4;
  const GptqOutcome outcome = run(input, options);
  EXPECT_GT(*outcome.receipt.held_out_error, *outcome.receipt.held_out_error_rounding);
  EXPECT_LT(outcome.receipt.error, outcome.receipt.error_rounding);
  EXPECT_TRUE(outcome.receipt.fell_back);
  input.held_out_hessian = layer.hessian;
  EXPECT_FALSE(run(input, options).receipt.fell_back);
}

TEST(Gptq, TakesWhatItFindsWhereItIsNotToFallBack) {
  Layer layer = random_layer(8, 32, 40, 0.95, test::test_seed());
  const std::vector<float> other = moment_of(random_layer(8, 32, 2000, 0.0, 9).inputs, 32);
  GptqOptions options = options_of(3, false, 0, 4);
  options.damping = 1e-4;
  const GptqOutcome judged = run(layer.input(), options);  // wins on the samples themselves
  options.judges_samples = options.falls_back = false;
  const GptqOutcome plain = run(layer.input(), options);
  EXPECT_EQ(plain.codes, judged.codes);
  EXPECT_EQ(plain.grids.scales, judged.grids.scales);
  EXPECT_EQ(plain.receipt.error, 0);  // nothing was asked
  GptqInput input = layer.input();
  input.held_out_hessian = other;  // where it loses
  const GptqOutcome kept = run(input, options);
  EXPECT_GT(*kept.receipt.held_out_error, *kept.receipt.held_out_error_rounding);
  EXPECT_FALSE(kept.receipt.fell_back);
  EXPECT_EQ(kept.codes, judged.codes);
}

TEST(Gptq, TargetsTheFloatOutputsThroughTheInputsAsTheyCome) {
  // The layer sees x = y + noise where the float network sees y: the codes are to fit W y.
  double symmetric = 0, half = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Layer layer = random_layer(16, 48, 600, 0.5, seed);
    const std::vector<float> original = layer.inputs;
    Random random(seed, "noise");
    for (float& v : layer.inputs) v += 0.5f * static_cast<float>(random.normal());
    layer.hessian = moment_of(layer.inputs, 48);
    calibrate::CrossMoment cross(48);
    ASSERT_TRUE(cross.add(layer.inputs, original));
    GptqInput input = layer.input();
    GptqOptions options = options_of(4, false, 16, 3);
    options.target_share = 1.0;
    for (bool with_cross : {false, true}) {
      if (with_cross) input.cross = cross.finish();
      const GptqOutcome outcome = run(input, options);
      const std::vector<float> quantized = weights_of(layer, outcome, options.form);
      double error = 0, constant = 0;
      for (std::size_t t = 0; t < layer.samples; ++t) {
        for (std::size_t r = 0; r < 16; ++r) {
          double miss = 0, without = 0;
          for (std::size_t c = 0; c < 48; ++c) {
            const double w = layer.weights[r * 48 + c], x = layer.inputs[t * 48 + c], y = original[t * 48 + c];
            miss += w * y - static_cast<double>(quantized[r * 48 + c]) * x;
            without += w * (y - x);
          }
          error += miss * miss;
          constant += without * without;
        }
      }
      (with_cross ? half : symmetric) += error;
      if (with_cross) {
        EXPECT_NEAR(outcome.receipt.error, error - constant, 2e-3 * constant);
      }
    }
  }
  EXPECT_LT(half, 0.9 * symmetric);
}

TEST(Gptq, HasTheSameBitsForAnyThreads) {
  const Layer layer = random_layer(101, 200, 300, 0.5, 3);
  for (std::size_t group : {32u, 0u}) {
    GptqOptions options = options_of(4, true, group, 2);
    options.sweep_parts.searches_groups = true;
    const GptqOutcome one = run(layer.input(), options);
    set_threads(3);
    const GptqOutcome three = run(layer.input(), options);
    set_threads(1);
    EXPECT_EQ(one.codes, three.codes);
    EXPECT_EQ(one.grids.scales, three.grids.scales);
    EXPECT_EQ(one.receipt.error, three.receipt.error);
  }
}

TEST(Gptq, RefusesWhatIsNotFiniteOrDoesNotFit) {
  Layer layer = random_layer(2, 4, 10, 0, 1);
  layer.weights[5] = NAN;
  auto outcome = quantize_gptq(layer.input(), {});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("row \"1\", column \"1\""), std::string::npos) << outcome.error().message;
  layer.weights[5] = 0;
  layer.hessian[6] = INFINITY;
  EXPECT_FALSE(quantize_gptq(layer.input(), {}));
  layer.hessian.resize(9);
  outcome = quantize_gptq(layer.input(), {});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("\"4 x 4\""), std::string::npos) << outcome.error().message;
}

}  // namespace
}  // namespace ctk::quantization
