#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::Op;
using graph::ValueId;

constexpr std::string_view kPass = "fold_pad";

// x [1,2,5,6] -> Pad -> Conv or pool -> y
GraphBuilder padded(const std::string& reader, const Ints& pads, const Attrs& attributes,
                    const Attrs& pad_attributes = {}, const Tensor& value = {}) {
  GraphBuilder b;
  std::vector<ValueId> pad_inputs = {b.input("x", {1, 2, 5, 6}), b.constant("pads", ints(pads))};
  if (value.is_defined()) pad_inputs.push_back(b.constant("value", value));
  const ValueId wide = b.node("Pad", pad_inputs, "wide", pad_attributes);
  std::vector<ValueId> inputs = {wide};
  if (reader == "Conv") inputs.push_back(b.constant("w", varied({3, 2, 3, 3})));
  b.output(b.node(reader, inputs, "y", attributes));
  return b;
}

int changes_of(GraphBuilder b) {
  return run_pass(b.graph, kPass).value();
}

const Tensor kData = varied({1, 2, 5, 6}, 5);
const Ints kPads = {0, 0, 1, 2, 0, 0, 0, 1};  // top 1, left 2, right 1

TEST(FoldPad, AddsToThePadsOfAConv) {
  GraphBuilder b = padded("Conv", kPads, {{"pads", Ints{1, 0, 1, 0}}});
  EXPECT_EQ(expect_same_function(b, kPass, {kData}), 1);
  EXPECT_EQ(count_ops(b.graph, Op::Pad), 0);
  EXPECT_EQ(b.graph.node(producer_of(b.graph, "y")).attributes.get_ints("pads"), (Ints{2, 2, 1, 1}));
}

TEST(FoldPad, FoldsZeroGivenAsValueAndUnderAutoPadValid) {
  GraphBuilder zero = padded("Conv", kPads, {}, {}, Tensor::scalar(0.0f));
  EXPECT_EQ(expect_same_function(zero, kPass, {kData}), 1);
  GraphBuilder valid = padded("Conv", kPads, {{"auto_pad", std::string("VALID")}});
  EXPECT_EQ(expect_same_function(valid, kPass, {kData}), 1);
}

TEST(FoldPad, LeavesWhatConvCannotDo) {
  EXPECT_EQ(changes_of(padded("Conv", kPads, {}, {}, Tensor::scalar(1.0f))), 0);
  EXPECT_EQ(changes_of(padded("Conv", kPads, {}, {{"mode", std::string("edge")}})), 0);
  EXPECT_EQ(changes_of(padded("Conv", kPads, {{"auto_pad", std::string("SAME_UPPER")}})), 0);
  EXPECT_EQ(changes_of(padded("Conv", {0, 0, -1, 0, 0, 0, 0, 0}, {})), 0);
  EXPECT_EQ(changes_of(padded("Conv", {0, 1, 0, 0, 0, -1, 0, 0}, {})), 0);  // channels
  EXPECT_EQ(changes_of(padded("Conv", {0, 0, INT64_MAX, 0, 0, 0, 0, 0}, {})), 0);
}

TEST(FoldPad, LeavesPaddingThatOthersRead) {
  GraphBuilder b = padded("Conv", kPads, {});
  b.output(b.node("Relu", {*b.graph.find_value("wide")}, "z"));
  EXPECT_EQ(expect_same_function(b, kPass, {kData}), 0);
}

TEST(FoldPad, IntoAveragePoolCountsThePadding) {
  for (const std::int64_t counts : {0, 1}) {
    GraphBuilder b = padded("AveragePool", kPads, {{"kernel_shape", Ints{3, 3}}, {"count_include_pad", counts}});
    EXPECT_EQ(expect_same_function(b, kPass, {kData}, 4e-7), 1);
    EXPECT_EQ(count_ops(b.graph, Op::Pad), 0);
  }
}

TEST(FoldPad, LeavesAveragePoolsThatWouldCountOtherwise) {
  const Attrs own = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(changes_of(padded("AveragePool", kPads, own)), 0);
  const Attrs up = {{"kernel_shape", Ints{3, 3}}, {"ceil_mode", std::int64_t{1}}};
  EXPECT_EQ(changes_of(padded("AveragePool", kPads, up)), 0);
  EXPECT_EQ(changes_of(padded("AveragePool", kPads, {{"kernel_shape", Ints{2, 2}}})), 0);  // pad 2
  EXPECT_EQ(changes_of(padded("MaxPool", kPads, {{"kernel_shape", Ints{3, 3}}})), 0);
}

}  // namespace
}  // namespace ctk::test
