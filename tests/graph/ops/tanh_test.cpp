#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Tanh, MatchesKnownPoints) {
  // tanh(ln 2) = (2 - 1/2) / (2 + 1/2) = 0.6
  const float ln2 = 0.69314718056f;
  expect_f32(run_one("Tanh", {f32({4}, {0, ln2, -ln2, 100})}), {4}, {0, 0.6f, -0.6f, 1}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
