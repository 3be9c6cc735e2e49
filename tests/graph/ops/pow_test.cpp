#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Pow, RaisesWithBroadcasting) {
  expect_f32(run_one("Pow", {f32({3}, {2, 3, -2}), f32({}, {3})}), {3}, {8, 27, -8});
  expect_f32(run_one("Pow", {f32({}, {2}), f32({3}, {-1, 0, 10})}), {3}, {0.5f, 1, 1024});
  expect_f32(run_one("Pow", {f32({2, 1}, {2, 3}), f32({2}, {1, 2})}), {2, 2}, {2, 4, 3, 9});
}

TEST(Pow, TakesIntegerExponents) {
  expect_f32(run_one("Pow", {f32({2}, {-3, 0.5f}), i64({}, {2})}), {2}, {9, 0.25f});
  expect_f32(run_one("Pow", {f32({2}, {2, 4}), i32({2}, {4, -1})}), {2}, {16, 0.25f});
}

TEST(Pow, NegativeBaseToAFractionIsNaN) {
  expect_f32(run_one("Pow", {f32({2}, {-4, 4}), f32({}, {0.5f})}), {2}, {kNaN, 2});
}

TEST(Pow, RefusesIntegerBase) {
  expect_input_error(infer_op("Pow", {unknown(DType::i64, {1}), unknown(DType::i64, {1})}),
                     {"X", "expected f32, found i64"});
}

}  // namespace
}  // namespace ctk::graph::test
