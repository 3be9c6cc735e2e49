#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Exp, OverflowsToInfinityAndUnderflowsToZero) {
  expect_f32(run_one("Exp", {f32({4}, {0, 1, 1000, -1000})}), {4}, {1, 2.7182818f, kInfinity, 0}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
