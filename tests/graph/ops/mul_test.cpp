#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Mul, BroadcastsAGateOverPlanes) {
  expect_f32(run_one("Mul", {counting({1, 2, 2, 1}), f32({1, 2, 1, 1}, {10, 100})}), {1, 2, 2, 1}, {10, 20, 300, 400});
}

TEST(Mul, MultipliesIntegers) {
  EXPECT_EQ(values_of<std::int64_t>(run_one("Mul", {i64({2}, {-3, 4}), i64({1}, {5})})), (Ints{-15, 20}));
}

}  // namespace
}  // namespace ctk::graph::test
