#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Where, ChoosesWithAllThreeBroadcast) {
  // Rows by the condition: row 0 takes x (a row), row 1 takes y (a scalar).
  expect_f32(run_one("Where", {booleans({2, 1}, {1, 0}), f32({3}, {1, 2, 3}), f32({}, {9})}), {2, 3},
             {1, 2, 3, 9, 9, 9});
}

TEST(Where, MovesIntegersAndBooleans) {
  const Tensor condition = booleans({2}, {0, 1});
  EXPECT_EQ(values_of<std::int64_t>(run_one("Where", {condition, i64({2}, {1, 2}), i64({2}, {3, 4})})), (Ints{3, 2}));
  EXPECT_EQ(bytes_of(run_one("Where", {condition, booleans({}, {1}), booleans({}, {0})})),
            (std::vector<std::uint8_t>{0, 1}));
}

TEST(Where, FollowsShapeArithmetic) {
  const auto infos =
      infer_op("Where", {known(booleans({2}, {1, 0})), known(i64({2}, {1, 1})), known(i64({2}, {5, 6}))});
  ASSERT_TRUE(infos.has_value());
  ASSERT_TRUE((*infos)[0].constant.has_value());
  EXPECT_EQ(values_of<std::int64_t>(*(*infos)[0].constant), (Ints{1, 6}));
}

TEST(Where, RefusesConditionThatIsNoBoolAndMixedBranches) {
  const auto f = unknown(DType::f32, {2});
  expect_input_error(infer_op("Where", {f, f, f}), {"condition", "expected bool, found f32"});
  expect_input_error(infer_op("Where", {unknown(DType::boolean, {2}), f, unknown(DType::i64, {2})}),
                     {"Y", "found i64"});
}

}  // namespace
}  // namespace ctk::graph::test
