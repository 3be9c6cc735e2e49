#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(GlobalAveragePool, AveragesEachPlane) {
  expect_f32(run_one("GlobalAveragePool", {counting({1, 2, 2, 2})}), {1, 2, 1, 1}, {2.5f, 6.5f});
  expect_f32(run_one("GlobalAveragePool", {counting({2, 1, 3})}), {2, 1, 1}, {2, 5});
}

TEST(GlobalAveragePool, LargePlanesLoseNothing) {
  // 2^24 + 1 ones: float sums stop at 2^24, a double sum does not.
  expect_f32(run_one("GlobalAveragePool", {filled({1, 1, 4097, 4097}, 1.0f)}), {1, 1, 1, 1}, {1});
}

TEST(GlobalAveragePool, RefusesEmptyPlanes) {
  expect_input_error(infer_op("GlobalAveragePool", {unknown(DType::f32, {1, 2, 0, 3})}), {"[1,2,0,3]"});
  expect_input_error(infer_op("GlobalAveragePool", {unknown(DType::f32, {1, 2})}), {"expected 3 to 8 dimensions"});
}

}  // namespace
}  // namespace ctk::graph::test
