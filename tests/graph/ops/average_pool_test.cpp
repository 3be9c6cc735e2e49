#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(AveragePool, LeavesPaddingOutOfTheMeanUnlessToldOtherwise) {
  const AttributeList attributes = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}};
  AttributeList counting_pads = attributes;
  counting_pads.push_back({"count_include_pad", std::int64_t{1}});
  expect_f32(run_one("AveragePool", {f32({1, 1, 2}, {4, 6})}, attributes), {1, 1, 3}, {4, 5, 6});
  expect_f32(run_one("AveragePool", {f32({1, 1, 2}, {4, 6})}, counting_pads), {1, 1, 3}, {2, 5, 3});
}

TEST(AveragePool, CeilModeOverhangIsNeverCounted) {
  // Window 3 holds 5 and hangs over by one beyond input and padding.
  expect_f32(run_one("AveragePool", {counting({1, 1, 5})},
                     {{"kernel_shape", Ints{2}},
                      {"strides", Ints{2}},
                      {"ceil_mode", std::int64_t{1}},
                      {"count_include_pad", std::int64_t{1}}}),
             {1, 1, 3}, {1.5f, 3.5f, 5});
}

TEST(AveragePool, OneWindowHangsOverWhereLessThanAStrideIsMissing) {
  // (1 + 2) / 2, with padding in front; windows of 4 over 3 elements.
  const AttributeList attributes = {{"kernel_shape", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{1, 0}}};
  expect_f32(run_one("AveragePool", {counting({1, 1, 2})}, attributes), {1, 1, 1}, {1.5f});
  // Counting the padding, ONNX Runtime divides by 4 up to opset 18 and by 3 later.
  AttributeList counting_pads = attributes;
  counting_pads.push_back({"count_include_pad", std::int64_t{1}});
  expect_input_error(infer_op("AveragePool", {unknown(DType::f32, {1, 1, 2})}, counting_pads),
                     {"count_include_pad", "window's 4", "found 3", "opset 18"});
}

TEST(AveragePool, DilationAveragesItsTaps) {
  expect_f32(run_one("AveragePool", {counting({1, 1, 4})}, {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}}),
             {1, 1, 2}, {2, 3});
}

TEST(AveragePool, CornersCountTheirOwnElements) {
  // 2x2 of 1..4, 3x3 window, pads 1: every window holds all four elements.
  expect_f32(
      run_one("AveragePool", {counting({1, 1, 2, 2})}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}),
      {1, 1, 2, 2}, {2.5f, 2.5f, 2.5f, 2.5f});
}

}  // namespace
}  // namespace ctk::graph::test
