#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  // 3, 4: mean square 12.5, root 3.5355339; 3 / 3.5355339 = 0.84852814, 4 / 3.5355339 = 1.1313708; scale 2, 10.
  // -6, 8 is twice as long, so it gives the same but for the sign.
  expect_f32(run_one("RMSNormalization", {f32({2, 2}, {3, 4, -6, 8}), f32({2}, {2, 10})}, {{"epsilon", 0.0f}}), {2, 2},
             {1.6970563f, 11.313708f, -1.6970563f, 11.313708f}, 1e-5f);
}

TEST(RmsNormalization, NormalizesFromTheAxisOn) {
  // 1, 1, 1, 5: mean square 28 / 4 = 7, epsilon 9 -> 1 / sqrt(16) = 1/4.
  expect_f32(run_one("RMSNormalization", {f32({1, 2, 2}, {1, 1, 1, 5}), filled({2, 2}, 1.0f)},
                     {{"axis", std::int64_t{1}}, {"epsilon", 9.0f}}),
             {1, 2, 2}, {0.25f, 0.25f, 0.25f, 1.25f});
}

TEST(RmsNormalization, SumsRowsThatAreNoMultipleOfEight) {
  // Nineteen twos: mean square 4, root 2.
  expect_f32(run_one("RMSNormalization", {filled({1, 19}, 2.0f), filled({19}, 1.0f)}, {{"epsilon", 0.0f}}), {1, 19},
             std::vector<float>(19, 1.0f));
}

TEST(RmsNormalization, ZerosStayZero) {
  expect_f32(run_one("RMSNormalization", {filled({1, 3}, 0.0f), filled({3}, 5.0f)}), {1, 3}, {0, 0, 0});
}

TEST(RmsNormalization, EmptyBatchGivesNothing) {
  expect_f32(run_one("RMSNormalization", {f32({0, 4}, {}), filled({4}, 1.0f)}), {0, 4}, {});
}

TEST(RmsNormalization, RefusesWhatItCannotCompute) {
  const auto x = unknown(DType::f32, {2, 4});
  expect_input_error(infer_op("RMSNormalization", {x, unknown(DType::f32, {3})}), {"scale", "[2,4]", "found [3]"});
  expect_input_error(infer_op("RMSNormalization", {x, unknown(DType::f32, {4})}, {{"axis", std::int64_t{2}}}),
                     {"axis", "found 2"});
  expect_input_error(infer_op("RMSNormalization", {x, unknown(DType::f32, {4})}, {{"stash_type", std::int64_t{10}}}),
                     {"stash_type", "found 10"});
}

}  // namespace
}  // namespace ctk::graph::test
