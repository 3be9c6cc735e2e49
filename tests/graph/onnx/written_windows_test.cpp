// How sliding windows are written where ONNX Runtime or onnx's shape inference would read the operator's own words
// otherwise than its specification does.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/onnx/op_map.h"
#include "tests/graph/onnx/one_node.h"

namespace ctk::graph::onnx::test {
namespace {

bool has(const ::onnx::NodeProto& node, const std::string& attribute) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [&](const auto& entry) { return entry.name() == attribute; });
}

// ONNX Runtime's SAME padding of a pool leaves the dilation out: from 5 elements it makes 1, the specification 2.
TEST(WrittenWindows, APoolWithDilationsIsWrittenWithTheSpecifiedPads) {
  OneNode model(19, "MaxPool", {"x"}, {1, 1, 5});
  set_ints(model.self(), "kernel_shape", {3});
  set_ints(model.self(), "strides", {3});
  set_ints(model.self(), "dilations", {2});
  set_text(model.self(), "auto_pad", "SAME_UPPER");
  // ceil(5 / 3) = 2 windows of extent 5: 3 + 5 - 5 = 3 elements of padding, the odd one at the end.
  const auto upper = written_node(must_read(model), 19);
  EXPECT_FALSE(has(upper, "auto_pad"));
  EXPECT_EQ(ints_of(upper, "pads"), (std::vector<std::int64_t>{1, 2}));
}

// 6 elements, kernel 1, stride 3: 2 windows at 0 and 3. ONNX Runtime pads by 3 + 1 - 6 = -2 and reads 1 and 4.
TEST(WrittenWindows, AStrideAboveTheKernelIsWrittenWithoutNegativePads) {
  OneNode model(17, "Conv", {"x", "W"}, {1, 1, 6});
  model.floats("W", {1, 1, 1}, {1});
  set_ints(model.self(), "strides", {3});
  set_text(model.self(), "auto_pad", "SAME_UPPER");
  const auto node = written_node(must_read(model), 17);
  EXPECT_FALSE(has(node, "auto_pad"));
  EXPECT_EQ(ints_of(node, "pads"), (std::vector<std::int64_t>{0, 0}));
}

TEST(WrittenWindows, APoolWithoutDilationsKeepsItsAutoPad) {
  OneNode model(19, "MaxPool", {"x"}, {1, 1, 5});
  set_ints(model.self(), "kernel_shape", {3});
  set_text(model.self(), "auto_pad", "SAME_LOWER");
  const auto node = written_node(must_read(model), 19);
  EXPECT_TRUE(has(node, "auto_pad"));
  EXPECT_FALSE(has(node, "pads"));
}

// 3 columns, kernel 2, stride 3: rounding up, onnx's inference counts a window at column 3, past the end.
TEST(WrittenWindows, ACeilModeThatOnlyMiscountsIsWrittenAsRoundingDown) {
  OneNode model(17, "AveragePool", {"x"}, {1, 1, 5, 3});
  set_ints(model.self(), "kernel_shape", {2, 2});
  set_ints(model.self(), "strides", {3, 3});
  set_int(model.self(), "ceil_mode", 1);
  const auto node = written_node(must_read(model), 17);
  EXPECT_FALSE(has(node, "ceil_mode"));
  EXPECT_EQ(ints_of(node, "pads"), (std::vector<std::int64_t>{0, 0, 0, 0}));
}

// The size behind a Relu without a declaration follows from the input; the open batch does not matter.
TEST(WrittenWindows, APoolsInputSizeIsInferredWhereItIsNotDeclared) {
  ModelMaker model;
  model.input("x", {-1, 1, 8});
  model.output("y", {-1, 1, 4});
  model.node("Relu", {"x"}, {"h"}, "relu");
  auto& pool = model.node("MaxPool", {"h"}, {"y"}, "pool");
  set_ints(pool, "kernel_shape", {1});
  set_ints(pool, "strides", {2});
  set_int(pool, "ceil_mode", 1);
  // ceil(7 / 2) + 1 = 5 windows by onnx's inference, the last at element 8 of 8.
  EXPECT_FALSE(has(must_write(must_read(model)).graph().node(1), "ceil_mode"));
  // With an open length nothing is known.
  model.proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(2)
      ->clear_dim_value();
  model.proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_TRUE(has(must_write(must_read(model)).graph().node(1), "ceil_mode"));
}

TEST(WrittenWindows, ACeilModeThatRoundsUpIsKept) {
  OneNode model(17, "AveragePool", {"x"}, {1, 1, 5, 5});
  set_ints(model.self(), "kernel_shape", {2, 2});
  set_ints(model.self(), "strides", {2, 2});
  set_int(model.self(), "ceil_mode", 1);
  EXPECT_TRUE(has(written_node(must_read(model), 17), "ceil_mode"));
}

// Rows round up by an overhang of 1, columns miscount: the overhang becomes padding unless padding counts in the mean.
TEST(WrittenWindows, AnOverhangBesideAMiscountBecomesPadding) {
  OneNode model(17, "AveragePool", {"x"}, {1, 1, 7, 3});
  set_ints(model.self(), "kernel_shape", {2, 2});
  set_ints(model.self(), "strides", {3, 3});
  set_int(model.self(), "ceil_mode", 1);
  // Rows: windows at 0, 3, 6, the last one over element 7 of 7.
  const auto node = written_node(must_read(model), 17);
  EXPECT_FALSE(has(node, "ceil_mode"));
  EXPECT_EQ(ints_of(node, "pads"), (std::vector<std::int64_t>{0, 0, 1, 0}));
  set_int(model.self(), "count_include_pad", 1);
  EXPECT_TRUE(has(written_node(must_read(model), 17), "ceil_mode"));
}

// onnx's inference adds output_padding to input * stride; ONNX Runtime and the specification end at input * stride.
TEST(WrittenWindows, AutoPadWithOutputPaddingIsWrittenAsPads) {
  OneNode model(17, "ConvTranspose", {"x", "W"}, {1, 1, 4});
  model.floats("W", {1, 1, 3}, {1, 2, 3});
  set_ints(model.self(), "strides", {2});
  set_ints(model.self(), "output_padding", {1});
  set_text(model.self(), "auto_pad", "SAME_LOWER");
  // 3 * 2 + 3 + 1 = 10 elements, 8 wanted: one cut at either end.
  const auto node = written_node(must_read(model), 17);
  EXPECT_FALSE(has(node, "auto_pad"));
  EXPECT_EQ(ints_of(node, "pads"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(ints_of(node, "output_padding"), (std::vector<std::int64_t>{1}));
}

}  // namespace
}  // namespace ctk::graph::onnx::test
