#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Sub, KeepsTheOrderOfItsOperands) {
  expect_f32(run_one("Sub", {f32({2}, {5, 1}), f32({}, {3})}), {2}, {2, -2});
  expect_f32(run_one("Sub", {f32({}, {3}), f32({2}, {5, 1})}), {2}, {-2, 2});
  EXPECT_EQ(values_of<std::int32_t>(run_one("Sub", {i32({1}, {3}), i32({1}, {10})})), (std::vector<std::int32_t>{-7}));
}

}  // namespace
}  // namespace ctk::graph::test
