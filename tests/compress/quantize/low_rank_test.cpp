// Corrections of low rank: exact where the error has that rank, the best in the metric of the inputs elsewhere.
#include "compress/quantize/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/quantize/apply.h"
#include "compress/quantize/coordinate_descent.h"
#include "tests/support/graph_builder.h"

namespace ctk::test {
namespace {

using quantization::fit_low_rank;
using quantization::LowRank;

std::vector<float> identity(std::size_t n) {
  std::vector<float> h(n * n, 0.0f);
  for (std::size_t i = 0; i < n; ++i) h[i * n + i] = 1;
  return h;
}

TEST(LowRank, TakesTheLargestSingularValuesWhereInputsAreAlike) {
  // diag(5, 3, 2, 1) in a 4 x 6 matrix: what rank 2 leaves is 2^2 + 1^2 of 39.
  std::vector<float> error(4 * 6, 0.0f);
  const float values[] = {5, 3, 2, 1};
  for (std::size_t i = 0; i < 4; ++i) error[i * 6 + i] = values[i];
  const LowRank found = fit_low_rank(error, 4, 6, identity(6), 2);
  EXPECT_NEAR(found.error_before, 39, 1e-4);
  EXPECT_NEAR(found.error, 5, 1e-3);
  EXPECT_NEAR(fit_low_rank(error, 4, 6, identity(6), 9).error, 0, 1e-4);  // no more than the smaller side
}

TEST(LowRank, WeighsErrorsByWhatTheInputsAre) {
  // Errors of 5 where inputs are small (0.01) and of 1 where they are large (9): 25 * 0.01 against 9.
  std::vector<float> error{5, 0, 0, 1}, hessian{0.01f, 0, 0, 9};
  const LowRank found = fit_low_rank(error, 2, 2, hessian, 1);
  EXPECT_NEAR(found.error, 0.25, 1e-4);
  EXPECT_NEAR(std::abs(found.up[1]), 1, 1e-4);  // the second output
}

TEST(LowRank, LeavesNothingOfAnErrorOfThatRankAndSurvivesZeros) {
  std::vector<float> error(12 * 20);
  const Tensor a = varied({12, 3}, 1), b = varied({3, 20}, 2);
  for (std::size_t r = 0; r < 12; ++r) {
    for (std::size_t c = 0; c < 20; ++c) {
      for (std::size_t k = 0; k < 3; ++k)
        error[r * 20 + c] += a.values<float>()[r * 3 + k] * b.values<float>()[k * 20 + c];
    }
  }
  const LowRank found = fit_low_rank(error, 12, 20, identity(20), 3);
  EXPECT_LT(found.error, 1e-6 * found.error_before);
  const LowRank none = fit_low_rank(std::vector<float>(12 * 20, 0.0f), 12, 20, identity(20), 3);
  for (const float value : none.down) EXPECT_EQ(value, 0.0f);
  EXPECT_EQ(none.error, 0.0);
}

TEST(LowRank, AddsItsProductsBehindTheLayerUnderTheNamesThatWere) {
  GraphBuilder b;
  const auto x = b.input("x", {3, 6});
  const auto y = b.node("Gemm", {x, b.constant("w", varied({4, 6}, 1)), b.constant("b", varied({4}, 2))}, "y",
                        {{"transB", std::int64_t{1}}});
  b.output(b.node("Relu", {y}, "r"));
  b.output(y);
  const graph::Layer layer = graph::layers_of(b.graph)[0];
  b.graph.node(producer_of(b.graph, "r")).absorbed_by = layer.node;
  LowRank correction{1, {1, 0, 2, 0}, {0.5f, 0, 0, 0, 0, -1}, 0, 0};
  graph::Graph corrected = b.graph.clone();
  quantization::add_low_rank(corrected, layer, correction);
  ASSERT_TRUE(corrected.sort());
  const auto status = graph::verify(corrected);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(corrected.address(layer.node), "Gemm_y");
  const Tensor input = varied({3, 6}, 9);
  const auto before = interpret(b.graph, {input}), after = interpret(corrected, {input});
  ASSERT_TRUE(after) << after.error().message;
  for (std::size_t t = 0; t < 3; ++t) {
    const float inner = 0.5f * input.values<float>()[t * 6] - input.values<float>()[t * 6 + 5];
    const float added[] = {inner, 0, 2 * inner, 0};
    for (std::size_t c = 0; c < 4; ++c)
      EXPECT_NEAR(after->values.at("y").values<float>()[t * 4 + c],
                  before->values.at("y").values<float>()[t * 4 + c] + added[c], 1e-5);
  }
  EXPECT_FALSE(corrected.node(producer_of(corrected, "r")).absorbed_by.is_valid());
}

TEST(LowRank, AddsTwoConvolutionsBesideOne) {
  GraphBuilder b;
  const auto x = b.input("x", {1, 2, 5, 5});
  b.output(b.node("Conv", {x, b.constant("w", varied({3, 2, 3, 3}, 1))}, "y",
                  {{"strides", std::vector<std::int64_t>{2, 2}}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}));
  graph::Graph coded = b.graph.clone();
  ASSERT_TRUE(quantization::apply_schemes(coded, {{"Conv_y", parse_scheme("w4a16_c").value()}}, {}, {}));
  const graph::Layer layer = graph::layers_of(coded)[0];
  // One direction: outputs get 1, 0 and 2 times what is at the middle of the window's second channel.
  LowRank correction{1, {1, 0, 2}, std::vector<float>(18, 0.0f), 0, 0};
  correction.down[9 + 4] = 1;
  graph::Graph corrected = coded.clone();
  quantization::add_low_rank(corrected, layer, correction);
  ASSERT_TRUE(corrected.sort());
  const auto status = graph::verify(corrected);
  ASSERT_TRUE(status) << status.error().message;
  const Tensor input = varied({1, 2, 5, 5}, 9);
  const auto before = interpret(coded, {input}), after = interpret(corrected, {input});
  ASSERT_TRUE(before) << before.error().message;
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(after->values.at("y").shape(), (Shape{1, 3, 3, 3}));
  const float added[] = {1, 0, 2};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < 3; ++column) {
        const std::size_t at = (c * 3 + row) * 3 + column;
        const float middle = input.values<float>()[25 + 2 * row * 5 + 2 * column];
        EXPECT_NEAR(after->values.at("y").values<float>()[at],
                    before->values.at("y").values<float>()[at] + added[c] * middle, 1e-5)
            << at;
      }
    }
  }
}

}  // namespace
}  // namespace ctk::test
