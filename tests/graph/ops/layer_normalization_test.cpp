#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(LayerNormalization, NormalizesTheLastDimension) {
  // Rows 1, 3 and 10, 30: mean 2 and 20, deviation 1 and 10, so both give -1, 1; scale 2, 3 and bias 10, 20.
  expect_f32(run_one("LayerNormalization", {f32({2, 2}, {1, 3, 10, 30}), f32({2}, {2, 3}), f32({2}, {10, 20})},
                     {{"epsilon", 0.0f}}),
             {2, 2}, {8, 23, 8, 23}, 1e-6f);
}

TEST(LayerNormalization, NormalizesFromTheAxisOnAndTellsTheStatistics) {
  // 1, 3, 5, 7: mean 4, variance 5, epsilon 4 -> 1 / sqrt(9) = 1/3.
  const auto outputs = run_op("LayerNormalization", {f32({1, 2, 2}, {1, 3, 5, 7}), filled({2, 2}, 3.0f)},
                              {{"axis", std::int64_t{1}}, {"epsilon", 4.0f}}, 3);
  ASSERT_TRUE(outputs.has_value()) << outputs.error().message;
  expect_f32((*outputs)[0], {1, 2, 2}, {-3, -1, 1, 3}, 1e-6f);
  expect_f32((*outputs)[1], {1, 1, 1}, {4});
  expect_f32((*outputs)[2], {1, 1, 1}, {1.0f / 3.0f}, 1e-7f);
}

TEST(LayerNormalization, ConstantRowGivesTheBias) {
  expect_f32(run_one("LayerNormalization", {filled({1, 3}, 7.0f), filled({3}, 2.0f), f32({3}, {1, 2, 3})}), {1, 3},
             {1, 2, 3});
}

TEST(LayerNormalization, RefusesScaleThatDoesNotFit) {
  const auto x = unknown(DType::f32, {2, 3, 4});
  expect_input_error(infer_op("LayerNormalization", {x, unknown(DType::f32, {3})}), {"Scale", "[2,3,4]", "found [3]"});
  expect_input_error(infer_op("LayerNormalization", {x, unknown(DType::f32, {4})}, {{"axis", std::int64_t{3}}}),
                     {"axis", "found 3"});
}

}  // namespace
}  // namespace ctk::graph::test
