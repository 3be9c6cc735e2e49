#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(HardSigmoid, ClipsALine) {
  // 0.2 x + 0.5
  expect_f32(run_one("HardSigmoid", {f32({4}, {-3, -1, 0, 3})}), {4}, {0, 0.3f, 0.5f, 1}, 1e-7f);
  expect_f32(run_one("HardSigmoid", {f32({3}, {-1, 1, 2})}, {{"alpha", 0.5f}, {"beta", 0.25f}}), {3}, {0, 0.75f, 1});
}

}  // namespace
}  // namespace ctk::graph::test
