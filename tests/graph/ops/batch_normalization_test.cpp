#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(BatchNormalization, NormalizesEachChannel) {
  // Channel 0: (x - 1) * 2 / sqrt(4) + 10 with epsilon 0; channel 1: (x - 3) * 1 / sqrt(0.25) - 1.
  const std::vector<Tensor> inputs = {f32({1, 2, 2}, {1, 3, 4, 5}), f32({2}, {2, 1}), f32({2}, {10, -1}),
                                      f32({2}, {1, 3}), f32({2}, {4, 0.25f})};
  expect_f32(run_one("BatchNormalization", inputs, {{"epsilon", 0.0f}}), {1, 2, 2}, {10, 12, 1, 3});
}

TEST(BatchNormalization, EpsilonGuardsAConstantChannel) {
  // Variance 0, epsilon 0.25: (3 - 1) / 0.5 = 4.
  const std::vector<Tensor> inputs = {f32({1, 1}, {3}), f32({1}, {1}), f32({1}, {0}), f32({1}, {1}), f32({1}, {0})};
  expect_f32(run_one("BatchNormalization", inputs, {{"epsilon", 0.25f}}), {1, 1}, {4});
}

TEST(BatchNormalization, RefusesTrainingFormAndForeignChannels) {
  const auto c = unknown(DType::f32, {3});
  expect_input_error(infer_op("BatchNormalization", {unknown(DType::f32, {1, 3, 2}), c, c, c, c},
                              {{"training_mode", std::int64_t{1}}}),
                     {"training_mode", "inference form"});
  expect_input_error(infer_op("BatchNormalization", {unknown(DType::f32, {1, 4, 2}), c, c, c, c}),
                     {"scale", "expected shape [4], found [3]"});
  expect_input_error(infer_op("BatchNormalization", {unknown(DType::f32, {3}), c, c, c, c}), {"X", "dimensions"});
  expect_input_error(infer_op("BatchNormalization", {unknown(DType::f32, {1, 3}), c, c, c}), {"input 4 missing"});
}

}  // namespace
}  // namespace ctk::graph::test
