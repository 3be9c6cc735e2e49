#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(MatMul, MultipliesMatrices) {
  // [1 2; 3 4] * [5 6; 7 8] = [19 22; 43 50]
  expect_f32(run_one("MatMul", {counting({2, 2}), f32({2, 2}, {5, 6, 7, 8})}), {2, 2}, {19, 22, 43, 50});
}

TEST(MatMul, OneDimensionalOperandsLoseTheirDimension) {
  const Tensor row = f32({2}, {1, 10}), matrix = counting({2, 2});
  expect_f32(run_one("MatMul", {row, matrix}), {2}, {31, 42});  // 1*1 + 10*3, 1*2 + 10*4
  expect_f32(run_one("MatMul", {matrix, row}), {2}, {21, 43});  // 1*1 + 2*10, 3*1 + 4*10
  expect_f32(run_one("MatMul", {row, row}), {}, {101});
  expect_f32(run_one("MatMul", {counting({2, 1, 2}), row}), {2, 1}, {21, 43});
  expect_f32(run_one("MatMul", {row, counting({2, 2, 1})}), {2, 1}, {21, 43});
}

TEST(MatMul, BroadcastsBatches) {
  // A [2, 1, 1, 2] = (1, 2), (3, 4); B [3, 2, 1] = (1, 2), (3, 4), (5, 6). Dot products: 5, 11, 17; 11, 25, 39.
  expect_f32(run_one("MatMul", {counting({2, 1, 1, 2}), counting({3, 2, 1})}), {2, 3, 1, 1}, {5, 11, 17, 11, 25, 39});
}

TEST(MatMul, SharesOneMatrixBetweenAllBatches) {
  // [[1 2], [3 4]], [[5 6], [7 8]] times (1, 1).
  expect_f32(run_one("MatMul", {counting({2, 2, 2}), filled({2, 1}, 1.0f)}), {2, 2, 1}, {3, 7, 11, 15});
  expect_f32(run_one("MatMul", {filled({1, 2}, 1.0f), counting({2, 2, 2})}), {2, 1, 2}, {4, 6, 12, 14});
}

TEST(MatMul, RefusesShapesThatDoNotMultiply) {
  expect_input_error(infer_op("MatMul", {unknown(DType::f32, {2, 3}), unknown(DType::f32, {2, 3})}),
                     {"expected 3", "[2,3]"});
  expect_input_error(infer_op("MatMul", {unknown(DType::f32, {2, 3}), unknown(DType::f32, {})}),
                     {"B", "found shape []"});
  expect_input_error(infer_op("MatMul", {unknown(DType::f32, {2, 1, 3}), unknown(DType::f32, {3, 3, 1})}),
                     {"[2]", "[3]", "broadcast"});
  const std::int64_t large = std::int64_t{1} << 30;
  expect_input_error(infer_op("MatMul", {unknown(DType::f32, {large, 1}), unknown(DType::f32, {1, large})}), {"2^48"});
}

}  // namespace
}  // namespace ctk::graph::test
