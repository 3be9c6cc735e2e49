#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Gelu, ErfFormMatchesTheNormalDistribution) {
  // Phi(1) = 0.8413447, Phi(-1) = 0.1586553
  expect_f32(run_one("Gelu", {f32({4}, {0, 1, -1, 10})}), {4}, {0, 0.8413447f, -0.1586553f, 10}, 1e-6f);
}

TEST(Gelu, TanhFormDiffersInTheFourthDigit) {
  // 0.5 * (1 + tanh(0.7978846 * 1.044715)) = 0.5 * (1 + 0.6823840) = 0.8411920
  expect_f32(run_one("Gelu", {f32({2}, {1, -1})}, {{"approximate", std::string("tanh")}}), {2}, {0.841192f, -0.158808f},
             1e-6f);
}

TEST(Gelu, RefusesAnotherApproximation) {
  expect_input_error(infer_op("Gelu", {unknown(DType::f32, {2})}, {{"approximate", std::string("fast")}}),
                     {"approximate", "\"fast\""});
}

}  // namespace
}  // namespace ctk::graph::test
