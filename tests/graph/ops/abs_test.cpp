#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Abs, DropsTheSignOfFloatsAndIntegers) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  expect_f32(run_one("Abs", {f32({3}, {-1.5f, 2, -kInfinity})}), {3}, {1.5f, 2, kInfinity});
  EXPECT_EQ(values_of<std::int64_t>(run_one("Abs", {i64({3}, {3, -4, least})})), (Ints{3, 4, least}));
}

}  // namespace
}  // namespace ctk::graph::test
