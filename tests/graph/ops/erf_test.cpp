#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Erf, MatchesTabledValues) {
  // Abramowitz and Stegun, table 7.1: erf(0.5) = 0.5204998778, erf(1) = 0.8427007929
  expect_f32(run_one("Erf", {f32({4}, {0, 0.5f, 1, -1})}), {4}, {0, 0.5204999f, 0.8427008f, -0.8427008f}, 1e-6f);
}

}  // namespace
}  // namespace ctk::graph::test
