#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Elu, ApproachesMinusAlpha) {
  // alpha * (exp(-ln 2) - 1) = -alpha / 2
  const float ln2 = 0.69314718056f;
  expect_f32(run_one("Elu", {f32({3}, {-ln2, 2, -1000})}), {3}, {-0.5f, 2, -1}, 1e-6f);
  expect_f32(run_one("Elu", {f32({3}, {-ln2, 2, -1000})}, {{"alpha", 3.0f}}), {3}, {-1.5f, 2, -3}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
