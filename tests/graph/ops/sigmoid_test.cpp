#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Sigmoid, MatchesKnownPointsAndSaturatesWithoutOverflow) {
  // 1 / (1 + 1/3) = 3/4 at ln 3; its mirror image at -ln 3.
  const float ln3 = 1.0986122887f;
  expect_f32(run_one("Sigmoid", {f32({6}, {0, ln3, -ln3, 1000, -1000, kNaN})}), {6}, {0.5f, 0.75f, 0.25f, 1, 0, kNaN},
             1e-7f);
}

}  // namespace
}  // namespace ctk::graph::test
