#include "compress/quantize/rtn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "tests/support/graph_builder.h"

namespace ctk::quantization {
namespace {

TEST(Rtn, EightBitCodesAreSymmetricAndFourBitCodesReachMinusEight) {
  EXPECT_EQ(lowest_code(8), -127);
  EXPECT_EQ(highest_code(8), 127);
  EXPECT_EQ(lowest_code(4), -8);
  EXPECT_EQ(highest_code(4), 7);
  EXPECT_EQ(round_to_code(2.5f, 1.0f, 4), 2);  // ties to even
  EXPECT_EQ(round_to_code(-9.0f, 1.0f, 4), -8);
  EXPECT_EQ(round_to_code(500.0f, 1.0f, 8), 127);
}

TEST(Rtn, FindsTheGridThatWeightsAlreadyLieOn) {
  // Codes -8..7 times 0.25: the scale 0.25 has no error, absmax (2.0 / 7 = 0.2857) has.
  std::vector<float> values;
  for (int q = -8; q <= 7; ++q) values.push_back(0.25f * static_cast<float>(q));
  EXPECT_NEAR(fit_scale(values, 4), 0.25f, 1e-6f);
  EXPECT_LT(rounding_error(values, fit_scale(values, 4), 4), 1e-10);
}

TEST(Rtn, FittedScaleIsNeverWorseThanAbsmax) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<float> values(64);
    for (float& v : values) v = static_cast<float>(random.normal());
    values[0] *= 6;  // an outlier
    float largest = 0;
    for (float v : values) largest = std::max(largest, std::abs(v));
    for (int bits : {4, 8}) {
      const float absmax = largest / static_cast<float>(highest_code(bits));
      EXPECT_LE(rounding_error(values, fit_scale(values, bits), bits), rounding_error(values, absmax, bits)) << seed;
    }
  }
}

TEST(Rtn, ZeroChannelGetsAFinitePositiveScaleAndZeroCodes) {
  WeightRequest request;
  request.weight = Tensor::of<float>({2, 3}, std::vector<float>{0, 0, 0, 1, -2, 3});
  request.scheme = parse_scheme("w8a8_c").value();
  const auto outcome = quantize_rtn(request);
  ASSERT_TRUE(outcome);
  for (float scale : outcome->tensor.scales) EXPECT_GT(scale, 0.0f);
  EXPECT_EQ(unpack_codes(outcome->tensor)[0], 0);
  EXPECT_EQ(unpack_codes(outcome->tensor)[1], 0);
}

TEST(Rtn, RaisesTheScaleWhereTheBiasWouldNotFit) {
  WeightRequest request;
  request.weight = Tensor::of<float>({1, 2}, std::vector<float>{1e-7f, -1e-7f});
  request.scheme = parse_scheme("w8a8_c").value();
  request.least_scales = {1e-3f};
  const auto outcome = quantize_rtn(request);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->raised_scales, 1);
  EXPECT_FLOAT_EQ(outcome->tensor.scales[0], 1e-3f);
}

TEST(Rtn, ScalesRunAlongTheChannelAxis) {
  // Row r is 10^r large; the same matrix transposed must give the same scales on axis 1.
  const std::vector<float> rows{1, 2, -1, 10, 20, -10, 100, 200, -100}, columns{1, 10, 100, 2, 20, 200, -1, -10, -100};
  WeightRequest request;
  request.scheme = parse_scheme("w8a8_c").value();
  request.weight = Tensor::of<float>({3, 3}, rows);
  const auto by_row = quantize_rtn(request);
  request.weight = Tensor::of<float>({3, 3}, columns);
  request.channel_axis = 1;
  const auto by_column = quantize_rtn(request);
  ASSERT_TRUE(by_row && by_column);
  EXPECT_EQ(by_row->tensor.scales, by_column->tensor.scales);
  EXPECT_EQ(by_row->tensor.scales.size(), 3u);
}

// What rounding to scales at hand means, one weight at a time.
int code_of(float value, float scale, int zero, int lowest, int highest) {
  return std::clamp(static_cast<int>(std::nearbyint(value / scale)) + zero, lowest, highest);
}

TEST(Rtn, CodesAreTheNearestOnTheirGridInEveryLayout) {
  for (const char* method : {"rtn", "absmax"}) {
    for (const char* name : {"w4a16_g32", "w4a16_g32_affine", "w3a16_c", "w8a16_c_affine", "w4a16_t", "w5a16_g16"}) {
      for (const int axis : {0, 1}) {
        // 9 channels of 40 weights: no group, lane or byte comes out even.
        WeightRequest request;
        request.weight = test::varied(axis == 0 ? Shape{9, 40} : Shape{40, 9}, 5);
        request.scheme = parse_scheme(name).value();
        request.channel_axis = axis;
        const auto outcome = find_quantizer(method).value()->run(request);
        ASSERT_TRUE(outcome.has_value()) << name;
        const QuantTensor& tensor = outcome->tensor;
        EXPECT_EQ(tensor.method, method);
        const auto codes = unpack_codes(tensor);
        const auto values = request.weight.values<float>();
        const int bits = request.scheme.weight_bits, half = 1 << (bits - 1);
        const int lowest = bits == 8 && !request.scheme.is_affine ? -127 : -half;
        const std::size_t length = static_cast<std::size_t>(request.scheme.group_size);
        const std::size_t groups = length == 0 ? 1 : (40 + length - 1) / length;
        double error = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t channel = axis == 0 ? i / 40 : i % 9, at = axis == 0 ? i % 40 : i / 9;
          const bool is_one = tensor.scales.size() == 1;
          const std::size_t g = is_one ? 0 : channel * groups + (length == 0 ? 0 : at / length);
          const int zero = tensor.zeros.empty() ? 0 : tensor.zeros[g];
          ASSERT_EQ(codes[i], code_of(values[i], tensor.scales[g], zero, lowest, half - 1)) << name << " " << i;
          const double miss =
              static_cast<double>(values[i]) - static_cast<double>(tensor.scales[g]) * (codes[i] - zero);
          error += miss * miss;
        }
        EXPECT_NEAR(outcome->squared_error, error, 1e-9 * error) << name;
        EXPECT_LE(outcome->squared_error, outcome->squared_error_rtn * (1 + 1e-6)) << name;
      }
    }
  }
}

TEST(Absmax, TakesItsScaleFromTheLargestWeight) {
  WeightRequest request;
  request.weight = Tensor::of<float>({2, 4}, std::vector<float>{7, 3, -1.6f, 0.4f, -3.5f, 1, 0.26f, -0.24f});
  request.scheme = parse_scheme("w4a16_c").value();
  const auto outcome = quantize_absmax(request);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->tensor.scales, (std::vector<float>{1.0f, 0.5f}));  // 7 / 7, 3.5 / 7: fp16 numbers
  EXPECT_EQ(unpack_codes(outcome->tensor), (std::vector<std::int8_t>{7, 3, -2, 0, -7, 2, 1, 0}));
  request.scheme = parse_scheme("w4a8_c").value();
  const auto coded = quantize_absmax(request);
  ASSERT_TRUE(coded);
  EXPECT_EQ(coded->tensor.scales, (std::vector<float>{1.0f, 0.5f}));
  EXPECT_EQ(unpack_codes(coded->tensor), unpack_codes(outcome->tensor));
}

}  // namespace
}  // namespace ctk::quantization
