#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Max, TakesTheLargestOfAnyNumber) {
  expect_f32(run_one("Max", {f32({2}, {1, 5}), f32({2}, {3, 2}), f32({}, {4})}), {2}, {4, 5});
  expect_f32(run_one("Max", {f32({2}, {-kInfinity, 5})}), {2}, {-kInfinity, 5});
  EXPECT_EQ(values_of<std::int32_t>(run_one("Max", {i32({2}, {1, 5}), i32({1}, {2})})),
            (std::vector<std::int32_t>{2, 5}));
}

TEST(Max, NaNWinsFromEitherSide) {
  expect_f32(run_one("Max", {f32({2}, {kNaN, 1}), f32({2}, {1, kNaN})}), {2}, {kNaN, kNaN});
}

}  // namespace
}  // namespace ctk::graph::test
