#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

const AttributeList kSameLower = {{"auto_pad", std::string("SAME_LOWER")}};
const AttributeList kSameUpper = {{"auto_pad", std::string("SAME_UPPER")}};

TEST(Conv, SameLowerPadsTheBeginningFirst) {
  const auto x = counting({1, 1, 4, 4});
  const auto ones = filled({1, 1, 2, 2}, 1.0f);
  // One row and one column of zeros come first, so the first row sums only single elements of row 1 and pairs of them:
  // 1, 1+2, 2+3, 3+4; the second row 1+5, 1+2+5+6, ...
  const std::vector<float> expected = {1, 3, 5, 7, 6, 14, 18, 22, 14, 30, 34, 38, 22, 46, 50, 54};
  expect_f32(run_one("Conv", {x, ones}, kSameLower), {1, 1, 4, 4}, expected);
  expect_f32(run_one("Conv", {x, ones}, {{"pads", Ints{1, 1, 0, 0}}}), {1, 1, 4, 4}, expected);
}

TEST(Conv, SameUpperPadsTheEndFirst) {
  // First row: 1+2+5+6, 2+3+6+7, 3+4+7+8, then 4+8 beside the padding.
  const Tensor y = run_one("Conv", {counting({1, 1, 4, 4}), filled({1, 1, 2, 2}, 1.0f)}, kSameUpper);
  ASSERT_EQ(y.shape(), (Shape{1, 1, 4, 4}));
  EXPECT_EQ(std::vector<float>(y.values<float>().begin(), y.values<float>().begin() + 4),
            (std::vector<float>{14, 18, 22, 12}));
}

TEST(Conv, UnequalPadsAreTopLeftBottomRight) {
  // 2x2 of ones, 3x3 kernel, pads top 2, left 1, bottom 2, right 1: rows see 1, 2, 2, 1 image rows, columns 2, 2.
  const Tensor y =
      run_one("Conv", {filled({1, 1, 2, 2}, 1.0f), filled({1, 1, 3, 3}, 1.0f)}, {{"pads", Ints{2, 1, 2, 1}}});
  expect_f32(y, {1, 1, 4, 2}, {2, 2, 4, 4, 4, 4, 2, 2});
}

TEST(Conv, CrossCorrelatesWithoutFlippingTheKernel) {
  // 1*10 + 2*20 + 3*30 = 140; 2*10 + 3*20 + 4*30 = 200. Bias 0.5.
  expect_f32(run_one("Conv", {f32({1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 3}, {10, 20, 30}), f32({1}, {0.5f})}), {1, 1, 2},
             {140.5f, 200.5f});
}

TEST(Conv, StridesAndDilationsPickTheirElements) {
  // x = 1..7, taps 2 apart, windows 3 apart: 1*1 + 3*10 = 31, 4*1 + 6*10 = 64.
  expect_f32(
      run_one("Conv", {counting({1, 1, 7}), f32({1, 1, 2}, {1, 10})}, {{"strides", Ints{3}}, {"dilations", Ints{2}}}),
      {1, 1, 2}, {31, 64});
}

TEST(Conv, GroupsSeeOnlyTheirOwnChannels) {
  // Two groups of one input channel and two output channels each, kernel 1.
  expect_f32(
      run_one("Conv", {f32({1, 2, 1}, {3, 5}), f32({4, 1, 1}, {1, 10, 100, 1000})}, {{"group", std::int64_t{2}}}),
      {1, 4, 1}, {3, 30, 500, 5000});
}

TEST(Conv, SumsOverInputChannelsInThreeDimensions) {
  // 2x2x2 volume of two channels, kernel as large: 1 + ... + 16 = 136.
  expect_f32(run_one("Conv", {counting({1, 2, 2, 2, 2}), filled({1, 2, 2, 2, 2}, 1.0f)}), {1, 1, 1, 1, 1}, {136});
}

TEST(Conv, EmptyBatchGivesEmptyOutput) {
  EXPECT_EQ(run_one("Conv", {f32({0, 1, 4}, {}), filled({2, 1, 3}, 1.0f)}).shape(), (Shape{0, 2, 2}));
}

TEST(Conv, RefusesScalarWeight) {
  expect_input_error(infer_op("Conv", {unknown(DType::f32, {1, 1, 4, 4}), unknown(DType::f32, {})}),
                     {"W", "expected 4 dimensions", "found shape []"});
}

TEST(Conv, RefusesChannelsThatDoNotFit) {
  const auto x = unknown(DType::f32, {1, 6, 4, 4});
  expect_input_error(infer_op("Conv", {x, unknown(DType::f32, {4, 5, 1, 1})}), {"6 channels", "[4,5,1,1]"});
  expect_input_error(infer_op("Conv", {x, unknown(DType::f32, {4, 2, 1, 1})}, {{"group", std::int64_t{3}}}),
                     {"group", "divisor of the 4 output channels", "found 3"});
  for (std::int64_t group : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    expect_input_error(infer_op("Conv", {x, unknown(DType::f32, {4, 6, 1, 1})}, {{"group", group}}), {"group"});
  }
  expect_input_error(infer_op("Conv", {x, unknown(DType::f32, {4, 6, 1, 1}), unknown(DType::f32, {3})}),
                     {"input B", "expected shape [4]", "found [3]"});
}

TEST(Conv, RefusesWindowsThatCannotBe) {
  const std::vector<InferInput> inputs = {unknown(DType::f32, {1, 1, 4, 4}), unknown(DType::f32, {1, 1, 3, 3})};
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_input_error(infer_op("Conv", inputs, {{"strides", Ints{1, 0}}}), {"strides", "found 0"});
  expect_input_error(infer_op("Conv", inputs, {{"strides", Ints{1}}}), {"strides", "expected 2 values, found 1"});
  expect_input_error(infer_op("Conv", inputs, {{"dilations", Ints{1, huge}}}), {"dilations"});
  expect_input_error(infer_op("Conv", inputs, {{"dilations", Ints{2, 2}}}), {"padded input size 4", "spans 5"});
  expect_input_error(infer_op("Conv", inputs, {{"pads", Ints{0, 0, 0, -1}}}), {"pads", "found -1"});
  expect_input_error(infer_op("Conv", inputs, {{"pads", Ints{huge, 0, 0, 0}}}), {"pads"});
  expect_input_error(infer_op("Conv", inputs, {{"kernel_shape", Ints{3, 5}}}), {"kernel_shape", "[3,5]"});
  expect_input_error(infer_op("Conv", inputs, {{"auto_pad", std::string("SAME")}}), {"auto_pad", "\"SAME\""});
  const std::int64_t largest = (std::int64_t{1} << 31) - 1;
  expect_input_error(infer_op("Conv", inputs, {{"pads", Ints{largest, largest, largest, largest}}}), {"2^48"});
}

TEST(Conv, EmptyBatchDoesNotHideHugeImages) {
  const std::int64_t large = (std::int64_t{1} << 31) - 1;
  expect_input_error(
      infer_op("Conv", {unknown(DType::f32, {0, 1, large, large, large}), unknown(DType::f32, {1, 1, 1, 1, 1})}),
      {"2^48"});
}

TEST(Conv, RefusesHalfPrecision) {
  expect_input_error(infer_op("Conv", {unknown(DType::f16, {1, 1, 4}), unknown(DType::f16, {1, 1, 3})}),
                     {"expected f32, found f16"});
}

TEST(Conv, RefusesNegativeAndHugeDimensions) {
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_input_error(infer_op("Conv", {unknown(DType::f32, {1, 1, -4}), unknown(DType::f32, {1, 1, 3})}), {"negative"});
  expect_input_error(infer_op("Conv", {unknown(DType::f32, {huge, 1, 8}), unknown(DType::f32, {1, 1, 3})}), {"2^48"});
  expect_input_error(infer_op("Conv", {InferInput{}, InferInput{}}), {"input 0"});
}

}  // namespace
}  // namespace ctk::graph::test
