#include "tests/graph/ops/run_op.h"

namespace ctk::graph::test {
namespace {

TEST(Gemm, AlphaScalesTheProductOnly) {
  // A = 1..4, B = 0, 0.1, ..., 1.1 as [4, 3]: A * B = [7, 8, 9]. 2 * A * B = [14, 16, 18], + 0.5 * C = [5, 10, 15].
  // Sum of column 0: 1*0 + 2*0.3 + 3*0.6 + 4*0.9 = 6; column 1: 7; column 2: 8.
  std::vector<float> b(12);
  for (int i = 0; i < 12; ++i) b[i] = static_cast<float>(i) / 10.0f;
  const AttributeList attributes = {{"alpha", 2.0f}, {"beta", 0.5f}};
  expect_f32(run_one("Gemm", {counting({1, 4}), f32({4, 3}, b), f32({3}, {10, 20, 30})}, attributes), {1, 3},
             {17, 24, 31}, 1e-5f);
  expect_f32(run_one("Gemm", {counting({1, 4}), f32({4, 3}, b)}, attributes), {1, 3}, {12, 14, 16}, 1e-5f);
  expect_f32(run_one("Gemm", {counting({1, 4}), f32({4, 3}, b), f32({1}, {10})}, attributes), {1, 3}, {17, 19, 21},
             1e-5f);
}

TEST(Gemm, TransposesEitherOperand) {
  // [1 2; 3 4] * [1 2 3; 4 5 6] = [9 12 15; 19 26 33], however the two are stored.
  const Tensor a = f32({2, 2}, {1, 2, 3, 4}), a_transposed = f32({2, 2}, {1, 3, 2, 4});
  const Tensor b = counting({2, 3}), b_transposed = f32({3, 2}, {1, 4, 2, 5, 3, 6});
  const std::vector<float> expected = {9, 12, 15, 19, 26, 33};
  const std::int64_t yes = 1;
  expect_f32(run_one("Gemm", {a, b}), {2, 3}, expected);
  expect_f32(run_one("Gemm", {a_transposed, b}, {{"transA", yes}}), {2, 3}, expected);
  expect_f32(run_one("Gemm", {a, b_transposed}, {{"transB", yes}}), {2, 3}, expected);
  expect_f32(run_one("Gemm", {a_transposed, b_transposed}, {{"transA", yes}, {"transB", yes}}), {2, 3}, expected);
}

TEST(Gemm, SumsAllOfALongRow) {
  // 1 + 2 + ... + 19 = 190: two whole groups of eight and a tail.
  expect_f32(run_one("Gemm", {counting({1, 19}), filled({1, 19}, 1.0f)}, {{"transB", std::int64_t{1}}}), {1, 1}, {190});
}

TEST(Gemm, BroadcastsCInEveryLegalForm) {
  const Tensor a = filled({2, 1}, 1.0f), b = filled({1, 2}, 1.0f);  // product: all ones
  expect_f32(run_one("Gemm", {a, b, f32({}, {5})}), {2, 2}, {6, 6, 6, 6});
  expect_f32(run_one("Gemm", {a, b, f32({1}, {5})}), {2, 2}, {6, 6, 6, 6});
  expect_f32(run_one("Gemm", {a, b, f32({2}, {5, 7})}), {2, 2}, {6, 8, 6, 8});
  expect_f32(run_one("Gemm", {a, b, f32({1, 2}, {5, 7})}), {2, 2}, {6, 8, 6, 8});
  expect_f32(run_one("Gemm", {a, b, f32({2, 1}, {5, 7})}), {2, 2}, {6, 6, 8, 8});
  expect_f32(run_one("Gemm", {a, b, f32({2, 2}, {5, 7, 9, 11})}), {2, 2}, {6, 8, 10, 12});
}

TEST(Gemm, NothingToSumGivesC) {
  expect_f32(run_one("Gemm", {f32({1, 0}, {}), f32({0, 2}, {}), f32({2}, {3, 4})}), {1, 2}, {3, 4});
}

TEST(Gemm, RefusesScalarB) {
  expect_input_error(infer_op("Gemm", {unknown(DType::f32, {1, 4}), unknown(DType::f32, {})}),
                     {"B", "expected 2 dimensions", "found shape []"});
}

TEST(Gemm, RefusesShapesThatDoNotMultiply) {
  const auto a = unknown(DType::f32, {2, 4});
  expect_input_error(infer_op("Gemm", {a, unknown(DType::f32, {3, 4})}), {"expected 4", "[3,4]", "transB"});
  expect_input_error(infer_op("Gemm", {a, unknown(DType::f32, {4, 3}), unknown(DType::f32, {4})}),
                     {"input C", "[2,3]", "found [4]"});
  expect_input_error(infer_op("Gemm", {a, unknown(DType::f32, {4, 3}), unknown(DType::f32, {1, 2, 3})}), {"input C"});
  expect_input_error(infer_op("Gemm", {a, unknown(DType::f64, {4, 3})}), {"expected f32, found f64"});
}

}  // namespace
}  // namespace ctk::graph::test
