#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Sqrt, IsNaNBelowZero) {
  expect_f32(run_one("Sqrt", {f32({4}, {0, 9, 2, -1})}), {4}, {0, 3, 1.4142135f, kNaN}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
