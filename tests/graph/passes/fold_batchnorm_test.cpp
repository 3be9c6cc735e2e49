#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/pass_checks.h"

namespace ctk::test {
namespace {

using graph::Op;
using graph::ValueId;

constexpr std::string_view kPass = "fold_batchnorm";
// Weights and bias are rounded once each; a dot product of some tens of terms adds a few more roundings.
constexpr double kTolerance = 64 * 1.2e-7;

ValueId batch_norm(GraphBuilder& b, ValueId x, std::int64_t channels, const std::string& output, unsigned seed = 11) {
  Tensor variance = varied({channels}, seed + 3);
  for (float& value : variance.mutable_values<float>()) value = std::abs(value) + 0.1f;
  return b.node("BatchNormalization",
                {x, b.constant(output + "_scale", varied({channels}, seed)),
                 b.constant(output + "_shift", varied({channels}, seed + 1)),
                 b.constant(output + "_mean", varied({channels}, seed + 2)), b.constant(output + "_var", variance)},
                output);
}

// x -> layer -> BatchNormalization -> y
GraphBuilder normalized(const std::string& op, const Shape& input, const Shape& weight, std::int64_t channels,
                        const Attrs& attributes = {}, const Tensor& bias = {}) {
  GraphBuilder b;
  std::vector<ValueId> inputs = {b.input("x", input), b.constant("w", varied(weight))};
  if (bias.is_defined()) inputs.push_back(b.constant("b", bias));
  b.output(batch_norm(b, b.node(op, inputs, "h", attributes), channels, "y"));
  return b;
}

TEST(FoldBatchnorm, IntoConvWithAndWithoutBias) {
  for (const Tensor& bias : {Tensor{}, varied({5}, 4)}) {
    GraphBuilder b = normalized("Conv", {2, 3, 6, 6}, {5, 3, 3, 3}, 5, {}, bias);
    EXPECT_EQ(expect_same_function(b, kPass, {varied({2, 3, 6, 6}, 7)}, kTolerance), 1);
    EXPECT_EQ(count_ops(b.graph, Op::BatchNormalization), 0);
    EXPECT_EQ(b.graph.address(b.graph.order().front()), "Conv_h");
  }
}

TEST(FoldBatchnorm, WorksOutScaleAndShift) {
  // epsilon 0, variance 4, mean 3, scale 6, shift 1: y = (x - 3) / 2 * 6 + 1 = 3x - 8
  GraphBuilder b;
  const ValueId h = b.node(
      "Conv", {b.input("x", {1, 1, 1}), b.constant("w", floats({1, 1, 1}, {2})), b.constant("b", floats({1}, {5}))},
      "h");
  b.output(b.node("BatchNormalization",
                  {h, b.constant("s", floats({1}, {6})), b.constant("t", floats({1}, {1})),
                   b.constant("m", floats({1}, {3})), b.constant("v", floats({1}, {4}))},
                  "y", {{"epsilon", 0.0f}}));
  ASSERT_EQ(run_pass(b.graph, kPass).value(), 1);
  EXPECT_EQ(values_of(*b.graph.value(*b.graph.find_value("w")).constant), (Floats{6}));  // 3 * 2
  EXPECT_EQ(values_of(*b.graph.value(*b.graph.find_value("b")).constant), (Floats{7}));  // 3 * 5 - 8
}

TEST(FoldBatchnorm, IntoDepthwiseConv) {
  GraphBuilder b = normalized("Conv", {1, 4, 5, 5}, {4, 1, 3, 3}, 4, {{"group", std::int64_t{4}}});
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 4, 5, 5}, 7)}, kTolerance), 1);
}

TEST(FoldBatchnorm, IntoConvTransposeAlongItsChannels) {
  GraphBuilder one = normalized("ConvTranspose", {1, 3, 4, 4}, {3, 5, 3, 3}, 5);
  EXPECT_EQ(expect_same_function(one, kPass, {varied({1, 3, 4, 4}, 7)}, kTolerance), 1);
  GraphBuilder grouped =
      normalized("ConvTranspose", {1, 4, 4, 4}, {4, 3, 2, 2}, 6, {{"group", std::int64_t{2}}}, varied({6}, 9));
  EXPECT_EQ(expect_same_function(grouped, kPass, {varied({1, 4, 4, 4}, 7)}, kTolerance), 1);
}

TEST(FoldBatchnorm, IntoGemmOfEitherLayoutWithAlphaAndBeta) {
  for (const bool is_transposed : {false, true}) {
    for (const Tensor& bias : {Tensor{}, floats({1}, {0.5f}), varied({3}, 4), varied({1, 3}, 4)}) {
      GraphBuilder b = normalized("Gemm", {2, 8}, is_transposed ? Shape{3, 8} : Shape{8, 3}, 3,
                                  {{"transB", std::int64_t{is_transposed}}, {"alpha", 2.0f}, {"beta", 0.5f}}, bias);
      EXPECT_EQ(expect_same_function(b, kPass, {varied({2, 8}, 7)}, kTolerance), 1);
      EXPECT_EQ(count_ops(b.graph, Op::BatchNormalization), 0);
    }
  }
}

TEST(FoldBatchnorm, CopiesAWeightThatOthersRead) {
  GraphBuilder b;
  const ValueId x = b.input("x", {1, 3, 4, 4}), w = b.constant("w", varied({3, 3, 1, 1})),
                c = b.constant("c", varied({3}, 5));
  b.constant("w_folded", floats({1}, {1}));  // the name the copy would like
  const ValueId first = batch_norm(b, b.node("Conv", {x, w, c}, "h"), 3, "n");
  b.output(b.node("Conv", {first, w, c}, "y"));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 3, 4, 4}, 7)}, kTolerance), 1);
  EXPECT_EQ(values_of(*b.graph.value(w).constant), values_of(varied({3, 3, 1, 1})));
  EXPECT_EQ(values_of(*b.graph.value(c).constant), values_of(varied({3}, 5)));
}

TEST(FoldBatchnorm, KeepsTheNameOfAGraphOutputAndTheAddressOfTheLayer) {
  GraphBuilder b = normalized("Conv", {1, 2, 3, 3}, {2, 2, 1, 1}, 2);
  EXPECT_EQ(run_pass(b.graph, kPass).value(), 1);
  EXPECT_EQ(b.graph.value(b.graph.outputs()[0]).name, "y");
  EXPECT_EQ(b.graph.address(producer_of(b.graph, "y")), "Conv_h");
}

TEST(FoldBatchnorm, FoldsTwoInARow) {
  GraphBuilder b;
  const ValueId h = b.node("Conv", {b.input("x", {1, 2, 3, 3}), b.constant("w", varied({2, 2, 1, 1}))}, "h");
  b.output(batch_norm(b, batch_norm(b, h, 2, "n"), 2, "y", 21));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 2, 3, 3}, 7)}, kTolerance), 2);
}

TEST(FoldBatchnorm, LeavesItWhereTheLayersOutputIsReadElsewhere) {
  GraphBuilder b;
  const ValueId h = b.node("Conv", {b.input("x", {1, 2, 3, 3}), b.constant("w", varied({2, 2, 1, 1}))}, "h");
  b.output(b.node("Add", {h, batch_norm(b, h, 2, "n")}, "y"));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 2, 3, 3}, 7)}), 0);

  GraphBuilder output = normalized("Conv", {1, 2, 3, 3}, {2, 2, 1, 1}, 2);
  output.output(*output.graph.find_value("h"));
  EXPECT_EQ(expect_same_function(output, kPass, {varied({1, 2, 3, 3}, 7)}), 0);
}

TEST(FoldBatchnorm, LeavesItStandingAlone) {
  GraphBuilder b;
  b.output(batch_norm(b, b.input("x", {1, 2, 3, 3}), 2, "y"));
  EXPECT_EQ(expect_same_function(b, kPass, {varied({1, 2, 3, 3}, 7)}), 0);
}

TEST(FoldBatchnorm, FoldsZeroVarianceThroughEpsilonButNotNegative) {
  for (const float variance : {0.0f, -1.0f}) {
    GraphBuilder b = normalized("Conv", {1, 1, 2, 2}, {1, 1, 1, 1}, 1);
    b.graph.value(*b.graph.find_value("y_var")).constant = floats({1}, {variance});
    EXPECT_EQ(run_pass(b.graph, kPass).value(), variance == 0.0f ? 1 : 0);
  }
}

}  // namespace
}  // namespace ctk::test
