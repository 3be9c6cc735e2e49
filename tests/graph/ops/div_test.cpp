#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Div, DividesFloatsAsIeee) {
  expect_f32(run_one("Div", {f32({3}, {1, -1, 0}), f32({}, {0})}), {3}, {kInfinity, -kInfinity, kNaN});
  expect_f32(run_one("Div", {f32({2}, {1, 3}), f32({2}, {4, 2})}), {2}, {0.25f, 1.5f});
}

TEST(Div, IntegersTruncateTowardsZero) {
  EXPECT_EQ(values_of<std::int64_t>(run_one("Div", {i64({4}, {7, -7, 7, -7}), i64({4}, {2, 2, -2, -2})})),
            (Ints{3, -3, -3, 3}));
}

TEST(Div, LeastIntegerByMinusOneWrapsInsteadOfTrapping) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(values_of<std::int64_t>(run_one("Div", {i64({1}, {least}), i64({1}, {-1})})), (Ints{least}));
}

TEST(Div, IntegerDivisionByZeroIsAnError) {
  expect_input_error(infer_op("Div", {known(i64({2}, {1, 2})), known(i64({2}, {1, 0}))}), {"B", "found 0"});
  expect_input_error(run_op("Div", {i32({1}, {1}), i32({1}, {0})}), {"found 0"});
}

}  // namespace
}  // namespace ctk::graph::test
