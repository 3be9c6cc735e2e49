#include "compress/quantize/rtn.h"

#include <gtest/gtest.h>

#include "core/random.h"

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

}  // namespace
}  // namespace ctk::quantization
