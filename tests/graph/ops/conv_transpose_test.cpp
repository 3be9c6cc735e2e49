#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(ConvTranspose, SpreadsEachElementByTheKernel) {
  // 1 and 2 at stride 2 through [1, 10, 100]: positions 0..4 get 1, 10, 100 + 2, 20, 200. Bias 0.5.
  expect_f32(run_one("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100}), f32({1}, {0.5f})},
                     {{"strides", Ints{2}}}),
             {1, 1, 5}, {1.5f, 10.5f, 102.5f, 20.5f, 200.5f});
}

TEST(ConvTranspose, PadsCutTheEndsAndOutputPaddingAddsAtTheEnd) {
  // Of 1, 10, 102, 20, 200 pads [1, 1] leave 10, 102, 20; output_padding 1 gives the end back.
  const std::vector<Tensor> inputs = {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100})};
  expect_f32(run_one("ConvTranspose", inputs, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}}), {1, 1, 3}, {10, 102, 20});
  expect_f32(
      run_one("ConvTranspose", inputs, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"output_padding", Ints{1}}}),
      {1, 1, 4}, {10, 102, 20, 200});
}

TEST(ConvTranspose, AutoPadAndOutputShapeGiveThePads) {
  // Full output 1, 10, 102, 20, 200 (5); SAME wants 4: one element is cut, SAME_UPPER at the end, SAME_LOWER in front.
  const std::vector<Tensor> inputs = {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100})};
  expect_f32(run_one("ConvTranspose", inputs, {{"strides", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}}),
             {1, 1, 4}, {1, 10, 102, 20});
  expect_f32(run_one("ConvTranspose", inputs, {{"strides", Ints{2}}, {"auto_pad", std::string("SAME_LOWER")}}),
             {1, 1, 4}, {10, 102, 20, 200});
  expect_f32(run_one("ConvTranspose", inputs, {{"strides", Ints{2}}, {"output_shape", Ints{3}}}), {1, 1, 3},
             {10, 102, 20});
}

TEST(ConvTranspose, SameAddsNothingWhereTheKernelsReachLessFarThanTheStride) {
  // Sizes as ONNX Runtime and onnx's shape inference give them, 4 elements: (4 - 1) * stride + extent < 4 * stride.
  struct Case {
    std::int64_t kernel, stride, dilation, output;
  };
  for (const char* auto_pad : {"SAME_UPPER", "SAME_LOWER"}) {
    for (const Case& c : {Case{1, 2, 1, 7}, Case{2, 3, 1, 11}, Case{1, 3, 2, 10}, Case{2, 2, 1, 8}, Case{3, 2, 1, 8}}) {
      const auto shapes =
          infer_op("ConvTranspose", {unknown(DType::f32, {1, 1, 4}), unknown(DType::f32, {1, 1, c.kernel})},
                   {{"auto_pad", std::string(auto_pad)}, {"strides", Ints{c.stride}}, {"dilations", Ints{c.dilation}}});
      ASSERT_TRUE(shapes.has_value()) << shapes.error().message;
      EXPECT_EQ((*shapes)[0].shape, (Shape{1, 1, c.output})) << auto_pad << " kernel " << c.kernel;
    }
  }
  // 1 and 2 through [10, 100] at stride 3: 10, 100, nothing, 20, 200; a sixth element has no kernel to come from.
  expect_f32(run_one("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 2}, {10, 100})},
                     {{"strides", Ints{3}}, {"auto_pad", std::string("SAME_LOWER")}}),
             {1, 1, 5}, {10, 100, 0, 20, 200});
}

TEST(ConvTranspose, OutputPaddingFillsUpToTheSameSize) {
  // 2 elements, kernel 1, stride 2: 3 elements and one of output_padding make 2 * 2.
  expect_f32(run_one("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 1}, {10})},
                     {{"strides", Ints{2}}, {"output_padding", Ints{1}}, {"auto_pad", std::string("SAME_UPPER")}}),
             {1, 1, 4}, {10, 0, 20, 0});
}

TEST(ConvTranspose, GroupsCountOutputChannelsTwiceOver) {
  // W [in 4, out / group 2, 1], two groups: outputs 0, 1 from inputs 0, 1; outputs 2, 3 from inputs 2, 3.
  // x = 1, 2, 3, 4: 1*1 + 2*3 = 7, 1*2 + 2*4 = 10, 3*5 + 4*7 = 43, 3*6 + 4*8 = 50; bias 100 apart.
  expect_f32(run_one("ConvTranspose", {counting({1, 4, 1}), counting({4, 2, 1}), f32({4}, {0, 100, 200, 300})},
                     {{"group", std::int64_t{2}}}),
             {1, 4, 1}, {7, 110, 243, 350});
}

TEST(ConvTranspose, DilationSpacesTheTapsInTwoDimensions) {
  // One element 3 through a 2x2 kernel with rows 2 and columns 3 apart.
  expect_f32(
      run_one("ConvTranspose", {f32({1, 1, 1, 1}, {3}), f32({1, 1, 2, 2}, {1, 2, 4, 8})}, {{"dilations", Ints{2, 3}}}),
      {1, 1, 3, 4}, {3, 0, 0, 6, 0, 0, 0, 0, 12, 0, 0, 24});
}

TEST(ConvTranspose, RefusesBiasOfInputChannels) {
  // in 3, out 5: the bias has 5 elements, not 3.
  expect_input_error(infer_op("ConvTranspose", {unknown(DType::f32, {1, 3, 4, 4}), unknown(DType::f32, {3, 5, 3, 3}),
                                                unknown(DType::f32, {3})}),
                     {"input B", "expected shape [5]", "found [3]"});
}

TEST(ConvTranspose, RefusesShapesThatCannotBe) {
  const std::vector<InferInput> inputs = {unknown(DType::f32, {1, 4, 4}), unknown(DType::f32, {4, 1, 3})};
  expect_input_error(infer_op("ConvTranspose", inputs, {{"pads", Ints{3, 3}}}), {"output", "found 0"});
  expect_input_error(infer_op("ConvTranspose", inputs, {{"group", std::int64_t{3}}}), {"group", "4 input channels"});
  expect_input_error(infer_op("ConvTranspose", inputs, {{"output_shape", Ints{-1}}}), {"output_shape", "found -1"});
  expect_input_error(infer_op("ConvTranspose", inputs, {{"strides", Ints{2147483647}}}), {"output"});
  expect_input_error(infer_op("ConvTranspose", {unknown(DType::f32, {1, 4, 4}), unknown(DType::f32, {})}), {"W"});
  expect_input_error(infer_op("ConvTranspose", {unknown(DType::f32, {1, 4, 4}), unknown(DType::f32, {5, 1, 3})}),
                     {"4 channels", "[5,1,3]"});
}

}  // namespace
}  // namespace ctk::graph::test
