#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(HardSwish, IsZeroBelowMinusThreeAndIdentityAboveThree) {
  // x * (x / 6 + 1/2): -1 -> -1/3, 1 -> 2/3
  expect_f32(run_one("HardSwish", {f32({6}, {-4, -3, -1, 0, 1, 4})}), {6}, {0, 0, -1.0f / 3, 0, 2.0f / 3, 4}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
