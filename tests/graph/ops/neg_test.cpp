#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Neg, NegatesFloatsAndIntegers) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  expect_f32(run_one("Neg", {f32({2}, {1.5f, -2})}), {2}, {-1.5f, 2});
  EXPECT_EQ(values_of<std::int64_t>(run_one("Neg", {i64({3}, {3, -4, least})})), (Ints{-3, 4, least}));
  EXPECT_EQ(values_of<std::int32_t>(run_one("Neg", {i32({1}, {7})})), (std::vector<std::int32_t>{-7}));
}

}  // namespace
}  // namespace ctk::graph::test
