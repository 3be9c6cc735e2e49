#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(MaxPool, TakesTheLargestUnderEachWindow) {
  expect_f32(run_one("MaxPool", {counting({1, 1, 4, 4})}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}),
             {1, 1, 2, 2}, {6, 8, 14, 16});
}

TEST(MaxPool, PaddingNeverWins) {
  expect_f32(run_one("MaxPool", {f32({1, 1, 2}, {-3, -2})}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}),
             {1, 1, 3}, {-3, -2, -2});
}

TEST(MaxPool, CeilModeKeepsThePartialWindowButNoneInThePadding) {
  const AttributeList floor = {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  AttributeList ceil = floor;
  ceil.push_back({"ceil_mode", std::int64_t{1}});
  expect_f32(run_one("MaxPool", {counting({1, 1, 5})}, floor), {1, 1, 2}, {2, 4});
  expect_f32(run_one("MaxPool", {counting({1, 1, 5})}, ceil), {1, 1, 3}, {2, 4, 5});
  // 4 elements, kernel 1, stride 3, end pad... ceil((2 + 1 + 1 - 2) / 3) + 1 = 2, but the second window would start at
  // 3 - 1 = 2, past the 2 elements: dropped.
  expect_f32(
      run_one("MaxPool", {counting({1, 1, 2})},
              {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", std::int64_t{1}}}),
      {1, 1, 1}, {1});
}

TEST(MaxPool, DilationSkipsElements) {
  // Taps 2 apart: max(x0, x2), max(x1, x3), max(x2, x4).
  expect_f32(run_one("MaxPool", {f32({1, 1, 5}, {5, 4, 1, 9, 2})}, {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}}),
             {1, 1, 3}, {5, 9, 2});
}

TEST(MaxPool, AutoPadPutsTheOddElementAtItsSide) {
  const Tensor x = f32({1, 1, 3}, {3, 1, 2});
  expect_f32(run_one("MaxPool", {x}, {{"kernel_shape", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}}), {1, 1, 3},
             {3, 2, 2});
  expect_f32(run_one("MaxPool", {x}, {{"kernel_shape", Ints{2}}, {"auto_pad", std::string("SAME_LOWER")}}), {1, 1, 3},
             {3, 3, 2});
}

TEST(MaxPool, OneWindowHangsOverWhereLessThanAStrideIsMissing) {
  // ONNX Runtime and onnx's inference divide towards zero: (1 - 2) / 2 + 1 = 1 window, (1 - 2) / 1 + 1 = 0 windows.
  expect_f32(run_one("MaxPool", {f32({1, 1, 1}, {7})}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}), {1, 1, 1},
             {7});
  expect_f32(run_one("MaxPool", {f32({1, 1, 2}, {1, 2})},
                     {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", std::int64_t{1}}}),
             {1, 1, 1}, {2});
  // Taps 4 apart over 3 elements: only the first lies inside.
  expect_f32(run_one("MaxPool", {f32({1, 1, 3}, {1, 2, 3})},
                     {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"dilations", Ints{4}}}),
             {1, 1, 1}, {1});
  expect_input_error(
      infer_op("MaxPool", {unknown(DType::f32, {1, 1, 1})}, {{"kernel_shape", Ints{2}}, {"strides", Ints{1}}}),
      {"kernel", "padded input size 1", "found kernel 2"});
  expect_input_error(
      infer_op("MaxPool", {unknown(DType::f32, {1, 1, 1})}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}}),
      {"kernel", "padded input size 1", "found kernel 3"});
}

TEST(MaxPool, SamePaddingSpansTheDilatedWindow) {
  // The operator's specification: ceil(5 / 3) = 2 windows of extent 5, so 3 + 5 - 5 = 3 of padding, 1 in front.
  // Taps -1, 1, 3 and 2, 4, 6. onnx's inference agrees; ONNX Runtime's padding forgets the dilation.
  expect_f32(run_one("MaxPool", {f32({1, 1, 5}, {9, 1, 8, 2, 7})},
                     {{"kernel_shape", Ints{3}},
                      {"strides", Ints{3}},
                      {"dilations", Ints{2}},
                      {"auto_pad", std::string("SAME_UPPER")}}),
             {1, 1, 2}, {2, 8});
}

TEST(MaxPool, RefusesAWindowWithTapsInThePaddingOnly) {
  // One element, padded by one at both ends: taps at -1 and 1.
  const std::vector<InferInput> x = {unknown(DType::f32, {1, 1, 1})};
  const std::vector<std::string> words = {"window", "kernel 2, dilation 2", "padded by 1 and 1", "spatial dimension 0",
                                          "auto_pad"};
  expect_input_error(
      infer_op("MaxPool", x,
               {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}}),
      words);
  expect_input_error(
      infer_op("AveragePool", x, {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}, {"pads", Ints{1, 1}}}), words);
  // Taps at -2 and 1, at -1 and 2, at 0 and 3: the second window steps over both elements.
  expect_input_error(infer_op("MaxPool", {unknown(DType::f32, {1, 1, 2})},
                              {{"kernel_shape", Ints{2}}, {"dilations", Ints{3}}, {"pads", Ints{2, 2}}}),
                     {"at position 1 of"});
}

TEST(MaxPool, NaNIsNotHidden) {
  expect_f32(run_one("MaxPool", {f32({1, 1, 3}, {1, kNaN, 2})}, {{"kernel_shape", Ints{3}}}), {1, 1, 1}, {kNaN});
}

TEST(MaxPool, PoolsVolumesPlaneByPlane) {
  expect_f32(run_one("MaxPool", {counting({1, 2, 2, 2, 2})}, {{"kernel_shape", Ints{2, 2, 2}}}), {1, 2, 1, 1, 1},
             {8, 16});
}

TEST(MaxPool, RefusesWhatItCannotDo) {
  const std::vector<InferInput> x = {unknown(DType::f32, {1, 1, 4})};
  expect_input_error(infer_op("MaxPool", x, {{"kernel_shape", Ints{2}}}, 2), {"Indices"});
  expect_input_error(infer_op("MaxPool", x), {"kernel_shape"});
  expect_input_error(infer_op("MaxPool", x, {{"kernel_shape", Ints{5}}}), {"kernel", "padded input size 4"});
  expect_input_error(infer_op("MaxPool", x, {{"kernel_shape", Ints{0}}}), {"kernel", "found 0"});
  expect_input_error(infer_op("MaxPool", x, {{"kernel_shape", Ints{2}}, {"pads", Ints{2, 0}}}), {"pads", "found 2"});
  expect_input_error(infer_op("MaxPool", x,
                              {{"kernel_shape", Ints{2147483647}},
                               {"dilations", Ints{2147483647}},
                               {"auto_pad", std::string("SAME_UPPER")}}),
                     {"auto_pad"});
}

}  // namespace
}  // namespace ctk::graph::test
