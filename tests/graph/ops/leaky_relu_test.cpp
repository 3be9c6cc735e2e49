#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(LeakyRelu, ScalesNegativesByAlpha) {
  expect_f32(run_one("LeakyRelu", {f32({3}, {-2, 0, 3})}, {{"alpha", 0.25f}}), {3}, {-0.5f, 0, 3});
}

TEST(LeakyRelu, AlphaDefaultsToOneHundredth) {
  expect_f32(run_one("LeakyRelu", {f32({1}, {-100})}), {1}, {-1}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
