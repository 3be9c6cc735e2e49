#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Min, TakesTheSmallestOfAnyNumber) {
  expect_f32(run_one("Min", {f32({2}, {1, 5}), f32({2}, {3, 2}), f32({}, {4})}), {2}, {1, 2});
  expect_f32(run_one("Min", {f32({2}, {1, 5})}), {2}, {1, 5});
  expect_f32(run_one("Min", {f32({}, {3}), f32({2, 1}, {1, 5}), f32({2}, {9, 2})}), {2, 2}, {1, 1, 3, 2});
  EXPECT_EQ(values_of<std::int64_t>(run_one("Min", {i64({2}, {1, 5}), i64({}, {2})})), (Ints{1, 2}));
}

TEST(Min, NaNWinsFromEitherSide) {
  expect_f32(run_one("Min", {f32({2}, {kNaN, 1}), f32({2}, {1, kNaN})}), {2}, {kNaN, kNaN});
}

TEST(Min, RefusesMixedTypes) {
  expect_input_error(infer_op("Min", {unknown(DType::f32, {2}), unknown(DType::f32, {2}), unknown(DType::i64, {2})}),
                     {"f32 and i64"});
}

}  // namespace
}  // namespace ctk::graph::test
