#include "core/quant_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ctk {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ActivationRange, MapsItsEndsToTheOuterCodes) {
  // -1..3: 4/255 a step, zero 63.75 steps above the bottom -> 64.
  const ActivationQuant q = activation_quant_from_range(-1.0f, 3.0f);
  EXPECT_FLOAT_EQ(q.scale, 4.0f / 255.0f);
  EXPECT_EQ(q.zero_point, 64);
  EXPECT_EQ(quantize(-1.0f, q), 0);
  EXPECT_EQ(quantize(3.0f, q), 255);
}

TEST(ActivationRange, AlwaysHoldsZeroExactly) {
  for (const auto& [low, high] :
       {std::pair{0.5f, 2.0f}, {-3.0f, -1.0f}, {-0.3f, 7.7f}, {0.0f, 6.0f}, {-1e-30f, 1e30f}}) {
    const ActivationQuant q = activation_quant_from_range(low, high);
    EXPECT_EQ(quantize(0.0f, q), q.zero_point);
    EXPECT_EQ(dequantize(q.zero_point, q), 0.0f);
  }
  EXPECT_EQ(activation_quant_from_range(0.5f, 2.0f).zero_point, 0);
  EXPECT_EQ(activation_quant_from_range(-3.0f, -1.0f).zero_point, 255);
}

// A value that is constant zero during calibration once got scale 0, then NaN.
TEST(ActivationRange, OfZeroWidthHasAUsableScale) {
  const ActivationQuant zero = activation_quant_from_range(0.0f, 0.0f);
  EXPECT_GT(zero.scale, 0.0f);
  EXPECT_TRUE(std::isfinite(zero.scale));
  EXPECT_EQ(dequantize(quantize(0.0f, zero), zero), 0.0f);
  const ActivationQuant half = activation_quant_from_range(0.5f, 0.5f);
  EXPECT_NEAR(dequantize(quantize(0.5f, half), half), 0.5f, half.scale);
  const ActivationQuant negative = activation_quant_from_range(-0.5f, -0.5f);
  EXPECT_NEAR(dequantize(quantize(-0.5f, negative), negative), -0.5f, negative.scale);
}

TEST(ActivationRange, StaysFiniteAtTheEndsOfFloat) {
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (const auto& [low, high] :
       {std::pair{-most, most}, {0.0f, least}, {-least, 0.0f}, {-least, most}, {-kInfinity, kInfinity}}) {
    const ActivationQuant q = activation_quant_from_range(low, high);
    EXPECT_TRUE(std::isfinite(q.scale));
    EXPECT_GE(q.scale, std::numeric_limits<float>::min());
    EXPECT_EQ(dequantize(quantize(0.0f, q), q), 0.0f);
  }
}

// Symmetric ranges once got zero point 127 or 128 by the luck of rounding the scale.
TEST(ActivationRange, SymmetricAroundZeroHasZeroPoint128) {
  for (float r : {1.0f, 0.99f, 3.0f, 0.1f, 127.0f, 1e-20f, 3.7e19f, 1.0f / 3.0f}) {
    const ActivationQuant q = activation_quant_from_range(-r, r);
    ASSERT_EQ(q.zero_point, 128) << r;
    for (int i = 0; i <= 99; ++i) {
      const float x = r * static_cast<float>(i) / 100.0f;
      ASSERT_EQ(dequantize(quantize(-x, q), q), -dequantize(quantize(x, q), q)) << x;
    }
  }
}

TEST(Quantize, RoundsTiesToEvenThenSaturates) {
  const ActivationQuant q{0.5f, 10};
  EXPECT_EQ(quantize(0.25f, q), 10);     // 0.5 -> 0
  EXPECT_EQ(quantize(0.75f, q), 12);     // 1.5 -> 2
  EXPECT_EQ(quantize(-0.75f, q), 8);     // -1.5 -> -2
  EXPECT_EQ(quantize(122.75f, q), 255);  // 245.5 is past 245 before it is rounded
  EXPECT_EQ(quantize(1e30f, q), 255);
  EXPECT_EQ(quantize(-kInfinity, q), 0);
  EXPECT_EQ(quantize(std::nanf(""), q), 10);
}

TEST(Quantize, KeepsEveryCode) {
  for (int zero : {0, 1, 128, 255}) {
    const ActivationQuant q{0.0371f, static_cast<std::uint8_t>(zero)};
    for (int code = 0; code < 256; ++code) {
      EXPECT_EQ(quantize(dequantize(static_cast<std::uint8_t>(code), q), q), code);
    }
  }
}

TEST(PackI4, PutsTheFirstCodeIntoTheLowNibble) {
  const std::int8_t codes[] = {1, -1, -8, 7, 3};
  const Tensor packed = pack_codes({5}, codes, 4);
  const auto* bytes = static_cast<const std::uint8_t*>(packed.data());
  EXPECT_EQ(bytes[0], 0xf1);
  EXPECT_EQ(bytes[1], 0x78);
  EXPECT_EQ(bytes[2], 0x03);  // an odd tail leaves the high nibble 0
  QuantTensor weight;
  weight.codes = packed;
  EXPECT_EQ(unpack_codes(weight), (std::vector<std::int8_t>{1, -1, -8, 7, 3}));
}

QuantTensor weight_of(Shape shape, std::vector<std::int8_t> codes, int axis, int groups, std::vector<float> scales) {
  QuantTensor weight;
  weight.codes = Tensor::of<std::int8_t>(std::move(shape), std::span<const std::int8_t>(codes));
  weight.channel_axis = axis;
  weight.group_count = groups;
  weight.scales = std::move(scales);
  return weight;
}

std::vector<float> reals(const QuantTensor& weight) {
  const Tensor tensor = dequantize(weight);
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

TEST(DequantizeWeight, ScalesAlongTheChannelAxis) {
  // Conv and Gemm: channels on axis 0. MatMul: on the last axis.
  EXPECT_EQ(reals(weight_of({2, 2}, {1, 2, 3, 4}, 0, 1, {10, 100})), (std::vector<float>{10, 20, 300, 400}));
  EXPECT_EQ(reals(weight_of({2, 2}, {1, 2, 3, 4}, 1, 1, {10, 100})), (std::vector<float>{10, 200, 30, 400}));
  EXPECT_EQ(reals(weight_of({2, 2}, {1, 2, 3, 4}, 0, 1, {2})), (std::vector<float>{2, 4, 6, 8}));
}

TEST(DequantizeWeight, CountsChannelsOfGroupedTransposedConvolutionsThrough) {
  // [4 inputs, 1 output a group, 1, 1] in two groups: inputs 0, 1 feed channel 0, inputs 2, 3 channel 1.
  EXPECT_EQ(reals(weight_of({4, 1, 1, 1}, {1, 2, 3, 4}, 1, 2, {10, 100})), (std::vector<float>{10, 20, 300, 400}));
  EXPECT_EQ(channel_of_elements({2, 2, 1, 2}, 1, 2), (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(DequantizeWeight, IsSymmetricOverTheRestrictedRange) {
  const auto values = reals(weight_of({1, 3}, {-127, 0, 127}, 0, 1, {1.0f / 127.0f}));
  EXPECT_EQ(values[0], -values[2]);
  EXPECT_EQ(values[1], 0.0f);
}

TEST(QuantizeBias, RoundsAtTheProductOfTheScales) {
  // 0.5 * 0.25 = 0.125 a step: 1 is 8 steps, 0.1875 is 1.5 -> 2, 0.3125 is 2.5 -> 2.
  const std::vector<float> bias = {1.0f, 0.1875f, 0.3125f}, scales = {0.25f};
  const QuantBias codes = quantize_bias(bias, 0.5f, scales);
  EXPECT_EQ(codes.codes, (std::vector<std::int32_t>{8, 2, 2}));
  EXPECT_EQ(codes.clipped, 0);
}

// A weight scale of 1e-9 once let the bias overflow and clip unseen: 5 / 5e-10 = 1e10 codes.
TEST(QuantizeBias, CountsWhatItClipsAndFitsAtTheRaisedScale) {
  const std::vector<float> bias = {5.0f, -4.5f}, tiny = {1e-9f, 1e-9f};
  const QuantBias clipped = quantize_bias(bias, 0.5f, tiny);
  EXPECT_EQ(clipped.codes, (std::vector<std::int32_t>{INT32_MAX, INT32_MIN}));
  EXPECT_EQ(clipped.clipped, 2);
  const std::vector<float> raised = {least_weight_scale_for_bias(5.0f, 0.5f), least_weight_scale_for_bias(-4.5f, 0.5f)};
  const QuantBias fitting = quantize_bias(bias, 0.5f, raised);
  EXPECT_EQ(fitting.clipped, 0);
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_LE(std::abs(static_cast<double>(fitting.codes[c])), 0x1p30);
    EXPECT_NEAR(static_cast<double>(fitting.codes[c]) * 0.5 * raised[c], bias[c], 1e-5);
  }
}

// 1e-38 at an input scale of 1e-27: the step, input x weight, must be a normal number (1.18e-38), not 0.
TEST(QuantizeBias, AsksForAStepThatFloatCanHold) {
  const float weight_scale = least_weight_scale_for_bias(1e-38f, 1e-27f);
  EXPECT_GE(1e-27f * weight_scale, std::numeric_limits<float>::min());
  EXPECT_LE(1e-27f * weight_scale, 1.01f * std::numeric_limits<float>::min());
  EXPECT_EQ(least_weight_scale_for_bias(0.0f, 1e-27f), 0.0f);
}

TEST(QuantizeBias, IsDefinedWhenTheScaleUnderflows) {
  const std::vector<float> bias = {0.0f, 1.0f, -1.0f}, scales = {1e-30f};
  const QuantBias codes = quantize_bias(bias, 1e-30f, scales);
  EXPECT_EQ(codes.codes, (std::vector<std::int32_t>{0, INT32_MAX, INT32_MIN}));
  EXPECT_EQ(codes.clipped, 2);
}

// Two groups of 2 and a rest of 1 along the summed dimension, 2 channels.
TEST(ScaleOfElements, WithGroupsCountsChannelsThenGroups) {
  const QuantScheme scheme{4, 16, Granularity::per_group, 2};
  EXPECT_EQ(groups_of({2, 5}, 0, scheme), 3u);
  EXPECT_EQ(groups_of({5, 2}, 1, scheme), 3u);
  const std::vector<std::uint32_t> by_row{0, 0, 1, 1, 2, 3, 3, 4, 4, 5};
  EXPECT_EQ(scale_of_elements({2, 5}, 0, 1, scheme), by_row);
  const std::vector<std::uint32_t> by_column{0, 3, 0, 3, 1, 4, 1, 4, 2, 5};
  EXPECT_EQ(scale_of_elements({5, 2}, 1, 1, scheme), by_column);
}

TEST(StoredBytes, CountsHalfScalesWhereTheyAreExact) {
  QuantTensor weight;
  weight.scheme = {4, 16, Granularity::per_group, 2};
  weight.codes = pack_codes({2, 4}, std::vector<std::int8_t>{1, 2, 3, 4, -1, -2, -3, -8}, 4);
  weight.scales = {1.0f, 0.5f, 0.25f, 3.0f};
  EXPECT_EQ(stored_bytes(weight), 4u + 4u * 2u);
  EXPECT_EQ(dequantize(weight).values<float>()[7], -24.0f);
  EXPECT_EQ(dequantize(weight).values<float>()[2], 1.5f);
  weight.scales[1] = 0.1f;  // no fp16 number
  EXPECT_EQ(stored_bytes(weight), 4u + 4u * 4u);
}

}  // namespace
}  // namespace ctk
